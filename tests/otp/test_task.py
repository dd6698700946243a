"""Tasks whose crashes are results: the messages to owners, and the isolation of others."""

from __future__ import annotations

from typing import NamedTuple

import outcome
import pytest
import trio
from hypothesis import given, strategies as st
from trio.testing import wait_all_tasks_blocked

from sessionmgr.otp import (
    Caller,
    Crashed,
    Down,
    Killed,
    MaxChildren,
    Normal,
    Shutdown,
    Supervisor,
    SupervisorNotRunning,
    SupervisorStopping,
    TaskCancelled,
    TaskCrashed,
    TaskDone,
    TaskHandle,
    TaskSupervisor,
    child,
)
from tests.otp.puppets import (
    CrashError,
    Puppet,
    RunCall,
    RunCast,
    crash,
    in_virtual_time,
    inside,
    notifications_of,
)


async def work(seconds: float, how: str) -> str:
    """Take so long, and then end in this way."""
    await trio.sleep(seconds)
    if how == "crash":
        raise CrashError
    return how


class StartStep(NamedTuple):
    seconds: int
    how: str


class AwaitStep(NamedTuple):
    which: int
    patience: int


class CancelTaskStep(NamedTuple):
    which: int
    how: str


class PauseStep(NamedTuple):
    seconds: int


Act = StartStep | AwaitStep | CancelTaskStep | PauseStep
acts: st.SearchStrategy[Act] = st.one_of(
    st.builds(StartStep, st.integers(0, 3), st.sampled_from(["value", "crash"])),
    st.builds(AwaitStep, st.integers(0, 4), st.integers(0, 3)),
    st.builds(CancelTaskStep, st.integers(0, 4), st.sampled_from(["cancel", "kill"])),
    st.builds(PauseStep, st.integers(0, 2)),
)


class Errand(NamedTuple):
    """A run, what it was to do, and what its owner did about it."""

    run: TaskHandle[str]
    began: float
    plan: StartStep
    answers: list[str]
    stopped: list[float]


@given(script=st.lists(acts, max_size=12), schedule=st.random_module())
def test_p24_an_owner_gets_each_result_or_down_exactly_once_and_no_crash_harms_another(
    script: list[Act], schedule: object
) -> None:
    errands: list[Errand] = []
    ends: dict[TaskHandle[str], float] = {}

    async def witness(run: TaskHandle[str]) -> None:
        await run.ref.wait()
        ends[run] = trio.current_time()

    async def wait_for(errand: Errand) -> None:
        try:
            errand.answers.append(await errand.run.result())
        except TaskCrashed as error:
            errand.answers.append(f"crash: {type(error.__cause__).__name__}")
        except TaskCancelled:
            errand.answers.append("cancelled")

    async def main() -> list[object]:
        async with (
            TaskSupervisor() as tasks,
            Supervisor(child(Puppet, id="owner"), max_restarts=0) as sup,
            trio.open_nursery() as nursery,
        ):

            async def act(_puppet: Puppet, _caller: Caller) -> None:
                for step in script:
                    match step:
                        case StartStep(seconds, how):
                            run = await tasks.async_nolink(work, seconds, how)
                            errands.append(Errand(run, trio.current_time(), step, [], []))
                            nursery.start_soon(witness, run)
                        case AwaitStep(which, patience):
                            for errand in errands[which : which + 1]:
                                with trio.move_on_after(patience):
                                    await wait_for(errand)
                        case CancelTaskStep(which, how):
                            for errand in errands[which : which + 1]:
                                errand.run.cancel() if how == "cancel" else errand.run.ref.kill()
                                errand.stopped.append(trio.current_time())
                        case PauseStep(seconds):
                            await trio.sleep(seconds)

            owner = sup.ref("owner", Puppet)
            await owner.call(RunCall(act), timeout=None)
            for errand in errands:
                await errand.run.ref.wait()
            return await notifications_of(owner)
        raise AssertionError

    news = in_virtual_time(main)
    for run, began, plan, answers, stopped in errands:
        told = [it for it in news if isinstance(it, TaskDone) and it.run is run]
        downs = [it for it in news if isinstance(it, Down) and it.monitor is run]
        assert len(told) + len(downs) == (0 if answers else 1)
        due = began + plan.seconds
        assert ends[run] == min([due, *stopped])
        match run.outcome:
            case outcome.Value(value):
                assert (value, plan.how, min([due, *stopped])) == ("value", "value", due)
                assert [it.value for it in told] == ["value"] * len(told)
                assert (downs, set(answers) - {"value"}) == ([], set())
            case outcome.Error(TaskCrashed()):
                assert (plan.how, min([due, *stopped])) == ("crash", due)
                assert all(isinstance(it.reason, Crashed) for it in downs)
                assert (told, set(answers) - {"crash: CrashError"}) == ([], set())
            case _:
                assert stopped
                assert {it.reason for it in downs} <= {Shutdown(), Killed()}
                assert (told, set(answers) - {"cancelled"}) == ([], set())
    assert len(news) == sum(not errand.answers for errand in errands)


async def test_p24_a_crash_cancels_neither_body_nor_siblings(autojump_clock: object) -> None:
    async with TaskSupervisor() as tasks:
        good = await tasks.async_nolink(work, 2, "value")
        bad = await tasks.async_nolink(work, 1, "crash")
        with pytest.raises(TaskCrashed) as crashed:
            await bad.result()
        assert isinstance(crashed.value.__cause__, CrashError)
        assert isinstance(crashed.value.reason, Crashed)
        assert await good.result() == "value"
        assert trio.current_time() == 2.0


async def test_a_run_tells_how_it_is(autojump_clock: object) -> None:
    async with TaskSupervisor(name="tasks") as tasks:
        run = await tasks.async_nolink(work, 1, "value")
        await wait_all_tasks_blocked()
        assert (run.done, run.reason, run.outcome) == (False, None, None)
        assert repr(run) == "<TaskHandle tasks/work-1: running>"
        assert [row.id for row in tasks.which_children()] == ["work-1"]
        assert await run.result() == "value"
        assert (run.done, run.reason, run.outcome) == (True, Normal(), outcome.Value("value"))
        assert await run.result() == "value"
        assert tasks.which_children() == []
        assert repr(run) == "<TaskHandle tasks/work-1: stopped>"


async def test_whoever_is_no_actor_gets_no_messages_and_no_harm(autojump_clock: object) -> None:
    async def function(task_status: trio.TaskStatus[TaskHandle[str]]) -> None:
        task_status.started(await tasks.async_nolink(work, 1, "crash"))
        await trio.sleep_forever()

    async with TaskSupervisor() as tasks, Supervisor(child(function, id="f")) as sup:
        run = sup.ref("f").started_value
        assert isinstance(run, TaskHandle)
        with pytest.raises(TaskCrashed):
            await run.result()
        assert sup.ref("f").alive


async def test_p24_a_wait_that_was_given_up_leaves_the_message(autojump_clock: object) -> None:
    async def give_up(_puppet: Puppet, _caller: Caller) -> TaskHandle[str]:
        run = await tasks.async_nolink(work, 5, "value")
        with trio.move_on_after(1):
            await run.result()
        return run

    async with TaskSupervisor() as tasks, Supervisor(child(Puppet, id="owner")) as sup:
        owner = sup.ref("owner", Puppet)
        run = await owner.call(RunCall(give_up))
        await run.ref.wait()
        assert await notifications_of(owner) == [TaskDone(run, "value")]


async def test_p24_what_another_waits_for_is_still_told_to_the_owner(
    autojump_clock: object,
) -> None:
    async def begin(_puppet: Puppet, _caller: Caller) -> TaskHandle[str]:
        return await tasks.async_nolink(work, 1, "crash")

    async with TaskSupervisor() as tasks, Supervisor(child(Puppet, id="owner")) as sup:
        owner = sup.ref("owner", Puppet)
        run = await owner.call(RunCall(begin))
        with pytest.raises(TaskCrashed):
            await run.result()
        assert run.reason is not None
        assert await notifications_of(owner) == [Down(run, run.ref, run.reason)]


async def test_p24_several_tasks_of_the_owner_may_wait_together(autojump_clock: object) -> None:
    async def wait_twice(_puppet: Puppet, _caller: Caller) -> list[str]:
        run = await tasks.async_nolink(work, 3, "value")
        answers: list[str] = []

        async def wait(patience: float) -> None:
            with trio.move_on_after(patience):
                answers.append(await run.result())

        async with trio.open_nursery() as nursery:
            for patience in (1, 5, 3, 6):
                nursery.start_soon(wait, patience)
        return answers

    async with TaskSupervisor() as tasks, Supervisor(child(Puppet, id="owner")) as sup:
        owner = sup.ref("owner", Puppet)
        answers = await owner.call(RunCall(wait_twice))
        assert answers[:2] == ["value"] * 2
        assert await notifications_of(owner) == []


async def test_p24_a_run_outlives_its_owner(autojump_clock: object) -> None:
    async def begin(_puppet: Puppet, _caller: Caller) -> TaskHandle[str]:
        return await tasks.async_nolink(work, 5, "value")

    owners = child(Puppet, id="owner")
    async with TaskSupervisor() as tasks, Supervisor(owners) as sup:
        first = sup.ref("owner", Puppet)
        run = await first.call(RunCall(begin))
        first.cast(RunCast(crash))
        await wait_all_tasks_blocked()
        assert await run.result() == "value"
        second = sup.ref("owner", Puppet)
        assert second is not first
        assert await notifications_of(second) == []


@pytest.mark.parametrize("moment", ["at once", "at work", "at its end", "when over"])
async def test_p24_cancel_is_idempotent(moment: str, autojump_clock: object) -> None:
    async with TaskSupervisor() as tasks:
        run = await tasks.async_nolink(work, 1, "value")
        if moment != "at once":
            await trio.sleep({"at work": 0.5, "at its end": 1, "when over": 2}[moment])
        run.cancel()
        run.cancel()
        await run.ref.wait()
        first = repr(run.outcome)
        run.cancel()
        assert repr(run.outcome) == first
        if moment in ("at once", "at work"):
            assert run.reason == Shutdown()
            with pytest.raises(TaskCancelled, match=r"^task task_supervisor/work-1 was cancelled$"):
                await run.result()
        elif moment == "when over":
            assert await run.result() == "value"


async def test_p24_the_end_of_the_supervisor_is_told_as_well(autojump_clock: object) -> None:
    runs: list[TaskHandle[str]] = []

    async def begin(_puppet: Puppet, _caller: Caller) -> None:
        runs.append(await tasks.async_nolink(work, 60, "value"))
        runs.append(await tasks.async_nolink(work, 60, "value", shutdown="brutal_kill"))

    async with Supervisor(child(Puppet, id="owner")) as sup:
        owner = sup.ref("owner", Puppet)
        async with TaskSupervisor() as tasks:
            await owner.call(RunCall(begin))
        reasons = {
            it.monitor: it.reason for it in await notifications_of(owner) if isinstance(it, Down)
        }
        assert reasons == {runs[0]: Shutdown(), runs[1]: Killed()}
        for run in runs:
            with pytest.raises(TaskCancelled):
                await run.result()


async def test_a_task_supervisor_is_used_inside_its_block(autojump_clock: object) -> None:
    tasks = TaskSupervisor()
    with pytest.raises(SupervisorNotRunning, match="is not running: use it inside"):
        await tasks.async_nolink(work, 1, "value")
    async with tasks:
        pass
    with pytest.raises(SupervisorNotRunning):
        await tasks.async_nolink(work, 1, "value")


async def test_a_task_supervisor_that_stops_takes_no_more_work(autojump_clock: object) -> None:
    refused: list[Exception] = []

    async def stubborn() -> None:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.lowlevel.checkpoint()
                with pytest.raises(SupervisorStopping, match="is stopping") as stopping:
                    await tasks.async_nolink(work, 1, "value")
                refused.append(stopping.value)

    async with TaskSupervisor() as tasks:
        await tasks.async_nolink(stubborn)
        await wait_all_tasks_blocked()
    assert len(refused) == 1


async def test_a_task_supervisor_takes_as_many_as_it_may(autojump_clock: object) -> None:
    async with TaskSupervisor(max_children=2) as tasks:
        first = await tasks.async_nolink(work, 1, "value")
        await tasks.async_nolink(work, 2, "value")
        with pytest.raises(MaxChildren, match=r"^supervisor 'task_supervisor' already has 2"):
            await tasks.async_nolink(work, 1, "value")
        await first.result()
        await tasks.async_nolink(work, 1, "value")


async def test_an_owner_may_handle_messages_while_its_task_works(autojump_clock: object) -> None:
    async def report_back() -> str:
        return await inside(owner, lambda _: "heard")

    async def begin(_puppet: Puppet, _caller: Caller) -> None:
        await tasks.async_nolink(report_back)

    async with TaskSupervisor() as tasks, Supervisor(child(Puppet, id="owner")) as sup:
        owner = sup.ref("owner", Puppet)
        await owner.call(RunCall(begin))
        (done,) = await notifications_of(owner)
        assert isinstance(done, TaskDone)
        assert done.value == "heard"
