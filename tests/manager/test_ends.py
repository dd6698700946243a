"""Each row of the table of ends, and each way to leave a block."""

import pytest
import trio
from trio.testing import MockClock

from sessionmgr.adapter import Budget
from sessionmgr.manager import Clocks, ManagerClosing, RunHandle
from sessionmgr.model import (
    EndReason,
    Failure,
    FailureKind,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunResult,
    RunStatus,
)
from sessionmgr.testing.scripted_provider import (
    Crash,
    Deaf,
    Emit,
    Fail,
    Finish,
    Hang,
    Leave,
    RateLimited,
    Repeat,
    Say,
    Step,
    TurnEnd,
    Use,
    Wait,
)
from tests.manager.harness import ManagerHarness, events, open_harness, run_scripted, types


async def ended(house: ManagerHarness, *steps: Step) -> tuple[str, str | None, str | None]:
    return short(await house.result(*steps))


def short(result: RunResult) -> tuple[str, str | None, str | None]:
    kind = result.failure.kind.value if result.failure else None
    reason = result.reason.value if result.reason else None
    return result.status.value, kind, reason


async def test_a_provider_ends_it_well(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        result = await house.result(Say(text="done"), Finish(stop_reason="end_turn"))
        assert short(result) == ("completed", None, None)
        assert (result.text, result.stop_reason) == ("done", "end_turn")


async def test_a_provider_ends_it_with_an_error_of_its_kind(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        assert await ended(house, Fail(kind=FailureKind.AUTH_FAILED)) == (
            "failed",
            "auth_failed",
            None,
        )


async def test_a_rate_limit_without_a_waiter(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        assert await ended(house, RateLimited()) == ("rate_limited", "rate_limited", None)


async def test_the_caller_ends_it(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        run = await house.start(Hang())
        run.cancel("enough")
        result = await run.result()
        assert short(result) == ("cancelled", None, "user")
        assert result.detail == "enough"


async def test_the_manager_goes_down(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        run = await house.start(Hang())
    assert short(await run.result()) == ("cancelled", None, "shutdown")


async def test_the_deadline(autojump_clock: MockClock) -> None:
    async with open_harness(clocks=Clocks(deadline=7)) as house:
        before = trio.current_time()
        result = await house.result(Repeat(times=1000, steps=(Say(text="."), Wait(seconds=1))))
        assert short(result) == ("timed_out", "timed_out", "deadline")
        assert trio.current_time() - before == pytest.approx(7, abs=1.5)


@pytest.mark.parametrize(
    ("clocks", "steps"),
    [
        (Clocks(start=3), (Hang(),)),
        (Clocks(model=3), (Say(text="hm"), Hang())),
        (Clocks(idle=3), (TurnEnd(), Hang())),
    ],
    ids=["start", "model", "idle"],
)
async def test_a_clock(autojump_clock: MockClock, clocks: Clocks, steps: tuple[Step, ...]) -> None:
    async with open_harness(clocks=clocks) as house:
        session = await house.manager.open_session("actor")
        run = await session.submit(run_scripted(Wait(seconds=0.5), *steps, starts=False))
        assert short(await run.result()) == ("timed_out", "stalled", "idle")


async def test_the_budget(autojump_clock: MockClock) -> None:
    async with open_harness(budget=Budget(tokens=100)) as house:
        result = await house.result(Repeat(times=50, steps=(Use(output=30), Wait(seconds=1))))
        assert short(result) == ("failed", "budget_exceeded", "budget")
        assert result.usage.output == 120


async def test_a_pause(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        run = await house.start(Hang())
        await trio.sleep(1)
        await run.pause()
        assert short(await run.result()) == ("paused", None, "pause")


@pytest.mark.parametrize(
    ("steps", "says"),
    [
        ((Crash(message="boom"),), "boom"),
        ((Crash(message="boom", depth=3),), "boom"),
        ((Say(text="x"), Leave()), "without telling how it ended"),
    ],
    ids=["raised", "raised in nurseries", "left"],
)
async def test_an_adapter_crashes(
    autojump_clock: MockClock, steps: tuple[Step, ...], says: str
) -> None:
    async with open_harness() as house:
        result = await house.result(*steps)
        assert short(result) == ("failed", "adapter_crashed", None)
        assert result.failure is not None
        assert says in result.failure.message


async def test_an_end_that_is_emitted_as_a_plain_event_is_an_end(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        told = RunFailed(failure=Failure(kind=FailureKind.REFUSED, message="no"))
        assert await ended(house, Emit(event=told)) == ("failed", "refused", None)


async def test_the_first_end_wins_and_what_comes_later_changes_nothing(
    autojump_clock: MockClock,
) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        run = await session.submit(
            run_scripted(
                Finish(stop_reason="first"),
                Fail(),
                Emit(event=RunCompleted(stop_reason="third")),
                Say(text="more"),
                Use(output=5),
                Crash(),
            )
        )
        result = await run.result()
        assert short(result) == ("completed", None, None)
        assert (result.stop_reason, result.text) == ("first", "")
        assert result.usage.output == 0
        names = [each.type async for each in await house.manager.events(run.id)]
        assert names.count("run_completed") == 1
        assert "run_failed" not in names
        assert {"message_received", "token_usage_updated", "error_occurred"} <= set(names)


async def test_an_end_without_a_start_has_one_put_before_it(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        run = await session.submit(run_scripted(Fail(), starts=False))
        started, failed = [each for each in await events(run) if each.type.startswith("run_")]
        assert getattr(started, "synthetic", None) is True
        assert failed.type == "run_failed"


async def test_a_crash_ends_no_other_run(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        others = [await house.start(Wait(seconds=5), Say(text="well")) for _ in range(3)]
        crashed = [await house.start(Wait(seconds=1), Crash()) for _ in range(10)]
        for run in crashed:
            assert (await run.result()).status is RunStatus.FAILED
        for run in others:
            assert (await run.result()).status is RunStatus.COMPLETED


# --- leaving blocks -------------------------------------------------------------------------------


async def test_leaving_a_start_block_early_cancels_the_run(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        async with session.start(run_scripted(Say(text="partial"), Hang())) as run:
            async for event in run:
                if event.type == "message_received":
                    break
        assert run.status is RunStatus.CANCELLED
        result = await run.result()
        assert (result.reason, result.text) == (EndReason.USER, "partial")


class AdapterMishap(Exception):
    pass


async def test_an_exception_leaves_a_start_block_bare(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        mishap = AdapterMishap()
        runs: list[RunHandle] = []

        async def body() -> None:
            async with session.start(run_scripted(Hang())) as run:
                runs.append(run)
                raise mishap

        with pytest.raises(AdapterMishap) as raised:
            await body()
        assert raised.value is mishap
        assert runs[0].status is RunStatus.CANCELLED


async def test_a_cancellation_passes_through_a_start_block_when_the_run_has_ended(
    autojump_clock: MockClock,
) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        handle = None
        with trio.move_on_after(3) as scope:
            async with session.start(run_scripted(Hang())) as run:
                handle = run
                await trio.sleep_forever()
        assert scope.cancelled_caught
        assert handle is not None
        assert handle.status is RunStatus.CANCELLED


async def test_a_block_that_is_left_after_the_end_changes_nothing(
    autojump_clock: MockClock,
) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        async with session.start("hello") as run:
            await run.result()
        assert (await run.result()).status is RunStatus.COMPLETED


async def test_leaving_a_block_waits_for_the_end_and_not_for_ever(
    autojump_clock: MockClock,
) -> None:
    async with open_harness(clocks=Clocks(close=2)) as house:
        session = await house.manager.open_session("actor")
        before = trio.current_time()
        async with session.start(run_scripted(Deaf(seconds=60))) as run:
            await trio.sleep(1)
        assert run.status is RunStatus.CANCELLED
        assert trio.current_time() - before <= 1 + 3 * 2


@pytest.mark.parametrize("steps", [(Hang(),), (Deaf(seconds=3),)], ids=["hangs", "deaf"])
async def test_an_exception_leaves_the_managers_block_bare(
    autojump_clock: MockClock, steps: tuple[Step, ...]
) -> None:
    mishap = AdapterMishap()
    runs: list[RunHandle] = []

    async def body() -> None:
        async with open_harness() as house:
            runs.append(await house.start(*steps))
            await trio.sleep(1)
            raise mishap

    with pytest.raises(AdapterMishap) as raised:
        await body()
    assert raised.value is mishap
    assert runs[0].status is RunStatus.CANCELLED
    assert (await runs[0].result()).reason is EndReason.SHUTDOWN


async def test_a_cancellation_passes_through_the_managers_block(autojump_clock: MockClock) -> None:
    runs: list[RunHandle] = []
    with trio.move_on_after(3) as scope:
        async with open_harness() as house:
            runs.append(await house.start(Hang()))
            await trio.sleep_forever()
    assert scope.cancelled_caught
    assert [run.status for run in runs] == ["cancelled"]


async def test_both_blocks_at_once_let_one_exception_be_one(autojump_clock: MockClock) -> None:
    async def body() -> None:
        async with open_harness() as house:
            session = await house.manager.open_session("actor")
            async with session.start(run_scripted(Hang())), session.start(run_scripted(Hang())):
                await trio.sleep(1)
                raise AdapterMishap

    with pytest.raises(AdapterMishap):
        await body()


async def test_a_session_whose_close_clock_is_long_is_seen_out_all_the_same(
    autojump_clock: MockClock,
) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor", clocks=Clocks(close=200))
        run = await session.submit(run_scripted(Hang(), interrupt="ignore"))
        await trio.sleep(1)
    assert run.status is RunStatus.CANCELLED


async def test_leaving_the_manager_ends_what_waits_too(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        runs = [await session.submit(run_scripted(Hang())) for _ in range(5)]
    for run in runs:
        assert short(await run.result()) == ("cancelled", None, "shutdown")
    assert house.saw("prompt") == [run_scripted(Hang())]


async def test_a_start_while_the_manager_goes_down_is_whole_or_refused(
    autojump_clock: MockClock,
) -> None:
    started: list[RunHandle] = []
    refused = trio.Event()

    async def start_often(house: ManagerHarness) -> None:
        session = await house.manager.open_session("actor")
        try:
            while True:
                started.append(await session.submit(run_scripted(Hang())))
                await trio.sleep(0.5)
        except ManagerClosing:
            refused.set()

    async def body(task_status: trio.TaskStatus[ManagerHarness]) -> None:
        async with open_harness() as house:
            await house.start(Deaf(seconds=9))
            task_status.started(house)
            await trio.sleep(3)

    async with trio.open_nursery() as nursery:
        house = await nursery.start(body)
        nursery.start_soon(start_often, house)
    assert refused.is_set()
    assert started
    for run in started:
        assert run.status is RunStatus.CANCELLED


async def test_a_result_says_what_its_last_event_says(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        run = await house.start(Hang())
        run.cancel("so")
        last = (await events(run))[-1]
        assert isinstance(last, RunCancelled)
        assert (last.reason, last.detail) == (EndReason.USER, "so")
        assert (await types(run))[-1] == "run_cancelled"
