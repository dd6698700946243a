"""Cancelling always works, once, and keeps what came before it."""

from collections.abc import Awaitable, Callable, Sequence

import pytest
import trio
from trio.testing import MockClock

from sessionmgr.adapter import ApprovalRequest, Decision, Deny
from sessionmgr.manager import Clocks, RunHandle, SessionHandle
from sessionmgr.model import (
    NATIVE,
    Capabilities,
    EndReason,
    ErrorOccurred,
    FailureKind,
    MessageSent,
    RunStatus,
    Usage,
)
from sessionmgr.store import Append, AppendResult, MemoryStore, UnknownId
from sessionmgr.testing.faulty_store import FaultyStore
from sessionmgr.testing.scripted_provider import (
    ALL_IT_DOES,
    Ask,
    Crash,
    Deaf,
    Finish,
    Hang,
    Repeat,
    Say,
    Step,
    Tool,
    Use,
    Wait,
    scripted,
)
from tests.manager.harness import ManagerHarness, events, open_harness, run_scripted, stored, types

DUMB = Capabilities(streaming=NATIVE)


async def by_handle(house: ManagerHarness, run: RunHandle) -> bool:
    await trio.lowlevel.checkpoint()
    return run.cancel("why")


async def by_id(house: ManagerHarness, run: RunHandle) -> bool:
    return await house.manager.cancel(run.id, detail="why")


async def by_session(house: ManagerHarness, run: RunHandle) -> bool:
    return await house.manager.cancel(run.session_id, detail="why")


async def all_of_them(house: ManagerHarness, run: RunHandle) -> bool:
    return await house.manager.cancel_all(detail="why") == 1


@pytest.mark.parametrize("cancel", [by_handle, by_id, by_session, all_of_them])
async def test_a_run_is_cancelled_once_and_for_the_first_reason(
    autojump_clock: MockClock, cancel: Callable[[ManagerHarness, RunHandle], Awaitable[bool]]
) -> None:
    async with open_harness() as house:
        run = await house.start(Hang())
        await trio.sleep(1)
        assert await cancel(house, run) is True
        assert await cancel(house, run) is False
        run.cancel("another reason")
        result = await run.result()
        assert (result.status, result.reason, result.detail) == ("cancelled", "user", "why")
        assert await cancel(house, run) is False
        assert await house.manager.cancel(run.id) is False
        await trio.sleep(100)
        assert await house.manager.cancel(run.id) is False
        assert await house.manager.result(run.id) == result


async def test_cancelling_an_unknown_id_says_so(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        run = await house.start(Hang())
        with pytest.raises(UnknownId):
            await house.manager.cancel("run_nobody")
        with pytest.raises(UnknownId):
            await house.manager.cancel(run.id[:-1])
        assert run.status in {RunStatus.PENDING, RunStatus.RUNNING}


async def test_cancelling_a_session_ends_what_runs_and_what_waits(
    autojump_clock: MockClock,
) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        neighbour = await house.start(Wait(seconds=5))
        runs = [await session.submit(run_scripted(Hang())) for _ in range(4)]
        await trio.sleep(1)
        await session.cancel("stop it")
        for run in runs:
            result = await run.result()
            assert (result.status, result.detail) == (RunStatus.CANCELLED, "stop it")
        assert len(house.saw("prompt")) == 2
        assert (await neighbour.result()).status is RunStatus.COMPLETED
        assert (await (await session.submit("again")).result()).text == "again"


async def test_cancelling_all_counts_them(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        runs = [await house.start(Hang()) for _ in range(7)]
        assert await house.manager.cancel_all() == 7
        assert await house.manager.cancel_all() == 0
        assert {(await run.result()).status for run in runs} == {RunStatus.CANCELLED}


async def test_a_queued_run_is_cancelled_and_the_provider_never_hears_of_it(
    autojump_clock: MockClock,
) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        first = await session.submit(run_scripted(Wait(seconds=5)))
        second = await session.submit("second")
        third = await session.submit("third")
        assert second.cancel()
        with trio.fail_after(1):
            assert (await second.result()).status is RunStatus.CANCELLED
        assert first.status is RunStatus.RUNNING
        assert (await third.result()).text == "third"
        assert "second" not in house.saw("prompt")


async def test_an_interrupt_is_honoured_before_anything_is_cut(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        run = await session.submit(run_scripted(Hang(), unwinds=2.0))
        await trio.sleep(1)
        run.cancel()
        result = await run.result()
        assert result.status is RunStatus.CANCELLED
        assert house.saw("interrupt") == ["the caller"]
        assert trio.current_time() == pytest.approx(3, abs=0.1)
        assert "turn_completed" in await types(run)


async def test_who_is_interrupted_and_says_done_is_cancelled_all_the_same(
    autojump_clock: MockClock,
) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        run = await session.submit(run_scripted(Hang(), interrupt="done"))
        await trio.sleep(1)
        run.cancel()
        assert (await run.result()).status is RunStatus.CANCELLED
        assert "run_completed" not in await types(run)


@pytest.mark.parametrize("how", ["ignore", "crash", "hang"])
async def test_who_does_not_hear_the_interrupt_is_cut_when_the_grace_is_over(
    autojump_clock: MockClock, how: str
) -> None:
    async with open_harness(clocks=Clocks(close=4)) as house:
        session = await house.manager.open_session("actor")
        run = await session.submit(run_scripted(Hang(), interrupt=how))
        await trio.sleep(1)
        run.cancel()
        assert (await run.result()).status is RunStatus.CANCELLED
        assert trio.current_time() <= 1 + 4 + 0.1
        assert house.saw("over") == [""]


async def test_without_a_polite_way_it_is_cut_at_once(autojump_clock: MockClock) -> None:
    async with open_harness(actor=scripted("actor", capabilities=DUMB)) as house:
        run = await house.start(Hang())
        await trio.sleep(1)
        run.cancel()
        assert (await run.result()).status is RunStatus.CANCELLED
        assert trio.current_time() == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("capabilities", [ALL_IT_DOES, DUMB], ids=["polite", "dumb"])
async def test_a_deaf_run_is_cancelled_at_the_end_of_its_grace(
    autojump_clock: MockClock, capabilities: Capabilities
) -> None:
    actor = scripted("actor", capabilities=capabilities)
    async with open_harness(actor=actor, clocks=Clocks(close=4)) as house:
        run = await house.start(Say(text="before"), Deaf(seconds=500), Say(text="after"))
        await trio.sleep(1)
        run.cancel()
        assert (await types(run))[-2:] == ["stall_suspected", "run_cancelled"]
        assert trio.current_time() <= 1 + 4 + 0.3
        assert (await run.result()).text == "before"
        assert trio.current_time() <= 1 + 2 * 4 + 0.3


async def test_a_deaf_run_has_its_grace_from_the_cancel_on_and_not_from_its_record(
    autojump_clock: MockClock,
) -> None:
    store = FaultyStore()
    async with open_harness(store=store) as house:
        run = await house.start(Deaf(seconds=500))
        await trio.sleep(1)
        store.thawed = trio.Event()
        run.cancel()
        await trio.sleep(20)
        store.thawed.set()
        with trio.fail_after(0.1):
            assert (await types(run))[-1] == "run_cancelled"


async def test_a_deaf_run_does_not_hold_up_what_waits_in_its_session(
    autojump_clock: MockClock,
) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        deaf = await session.submit(run_scripted(Deaf(seconds=2000)))
        waiting = await session.submit("next")
        await trio.sleep(1)
        deaf.cancel()
        with trio.fail_after(100):
            assert (await waiting.result()).text == "next"


@pytest.mark.parametrize(
    "step",
    [
        Say(text="a long message", deltas=14, pause=1),
        Tool(name="make", takes=100),
        Ask(tool="rm"),
        Repeat(times=1000, steps=(Say(text="x"), Wait(seconds=0.1))),
    ],
    ids=["in a message", "in a tool", "in a question", "in a loop"],
)
async def test_it_works_wherever_the_run_is(autojump_clock: MockClock, step: Step) -> None:
    async def approve(_: ApprovalRequest) -> Decision:
        await trio.sleep(1000)
        return Deny()

    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        run = await session.submit(run_scripted(step), approve=approve)
        await trio.sleep(3.5)
        run.cancel()
        with trio.fail_after(0.1):
            assert (await run.result()).status is RunStatus.CANCELLED


async def test_what_was_said_and_used_before_is_kept(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        run = await house.start(
            Use(input=3, output=4, usd=0.25), Say(text="0123456789", deltas=10, pause=1)
        )
        await trio.sleep(4.5)
        run.cancel()
        result = await run.result()
        assert result.text == "0123"
        assert (result.usage, result.cost.usd) == (Usage(input=3, output=4), 0.25)
        assert await house.manager.result(run.id) == result


async def test_a_run_that_has_said_done_stays_done(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        run = await house.start(Finish(), Wait(seconds=2))
        await trio.sleep(1)
        assert run.cancel() is False
        assert (await run.result()).status is RunStatus.COMPLETED


async def test_a_crash_while_it_is_being_cancelled_is_noted_and_changes_nothing(
    autojump_clock: MockClock,
) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        run = await session.submit(run_scripted(Wait(seconds=3), Crash(), interrupt="ignore"))
        await trio.sleep(1)
        run.cancel()
        result = await run.result()
        assert (result.status, result.failure) == (RunStatus.CANCELLED, None)
        assert "error_occurred" in await types(run)


@pytest.mark.parametrize("end", [Hang(), Deaf(seconds=2)])
async def test_a_crash_of_an_interrupt_is_recorded_before_the_end_of_its_run(
    autojump_clock: MockClock, end: Step
) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        run = await session.submit(run_scripted(end, interrupt="crash"))
        await trio.sleep(1)
        run.cancel()
        assert (await run.result()).status is RunStatus.CANCELLED
        *_, before, last = await events(run)
        assert isinstance(before, ErrorOccurred)
        assert before.failure.kind is FailureKind.ADAPTER_CRASHED
        assert before.failure.message.endswith("ScriptedCrash: the script refuses the interrupt")
        assert last.type == "run_cancelled"


class FrozenStore(MemoryStore):
    """A store that stores nothing while it is frozen."""

    def __init__(self) -> None:
        super().__init__()
        self.thawed = trio.Event()
        self.thawed.set()

    async def append_all(self, appends: Sequence[Append]) -> Sequence[AppendResult | Exception]:
        await self.thawed.wait()
        return await super().append_all(appends)


async def test_with_a_frozen_store_the_work_ends_at_once_and_the_record_follows(
    autojump_clock: MockClock,
) -> None:
    store = FrozenStore()
    async with open_harness(store=store, clocks=Clocks(idle=60, model=60, start=60)) as house:
        run = await house.start(Repeat(times=10_000, steps=(Say(text="x"), Wait(seconds=1))))
        quiet = await house.start(Wait(seconds=1.5), Say(text="x"), Hang())
        await trio.sleep(1)
        store.thawed = trio.Event()
        await trio.sleep(1)
        run.cancel("frozen")
        await trio.sleep(20)
        assert house.saw("over") == [""]
        assert run.status is RunStatus.RUNNING
        await trio.sleep(600)
        store.thawed.set()
        await trio.sleep(1)
        result = await run.result()
        assert (result.status, result.reason, result.detail) == ("cancelled", "user", "frozen")
        assert quiet.status is RunStatus.RUNNING
        assert "stall_suspected" not in await stored(house, quiet.session_id)
        quiet.cancel()


@pytest.mark.parametrize("tick", range(40))
async def test_a_run_that_never_came_to_the_provider_is_not_said_to_be_sent(
    autojump_clock: MockClock, tick: int
) -> None:
    """Cancelled at each step of a queued run until it is active."""
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        first = await session.submit(run_scripted(Wait(seconds=1)))
        second = await session.submit("second")
        await trio.sleep(1)
        for _ in range(tick):
            await trio.lowlevel.checkpoint()
        second.cancel()
        await first.result()
        await second.result()
        states = [e.state for e in await events(second) if isinstance(e, MessageSent)]
        assert (states[-1] == "sent") is ("second" in house.saw("prompt")), states


async def test_a_start_that_is_cancelled_is_recorded_whole_or_not_at_all(
    autojump_clock: MockClock,
) -> None:
    outcomes: set[tuple[bool | str, ...]] = set()
    for ticks in range(30):
        async with open_harness() as house:
            session = await house.manager.open_session("actor")
            submitted: list[RunHandle] = []

            async def submit(
                session: SessionHandle = session, submitted: list[RunHandle] = submitted
            ) -> None:
                submitted.append(await session.submit(run_scripted(Hang())))

            async with trio.open_nursery() as nursery:
                nursery.start_soon(submit)
                for _ in range(ticks):
                    await trio.lowlevel.checkpoint()
                nursery.cancel_scope.cancel()
            await trio.sleep(20)
            runs = (await house.store.runs()).rows
            outcomes.add((bool(submitted), *(run.status for run in runs)))
    # Cancelled before it is stored, while it is stored, and after its start is sent.
    assert outcomes == {(False,), (False, "cancelled"), (True, "running")}


async def test_the_first_reason_wins_over_a_shutdown(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        run = await house.start(Deaf(seconds=3))
        await trio.sleep(1)
        run.cancel()
    assert (await run.result()).reason is EndReason.USER
