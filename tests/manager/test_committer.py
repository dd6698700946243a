"""The committer: when events are stored, in which transaction, and what a crash costs."""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import ClassVar, cast

import pytest
import trio
from trio.testing import MockClock

from sessionmgr.adapter import NATIVE, Capabilities, ProviderAdapter, RunContext
from sessionmgr.manager import InboxFull, RunHandle
from sessionmgr.manager.append_batch import AppendBatch
from sessionmgr.manager.commands import RecorderCommand
from sessionmgr.manager.committer import EPOCH, FLOOR, SHORT_WINDOW, WINDOW
from sessionmgr.manager.inbox import MOST_RUNS
from sessionmgr.manager.run_state import RunState
from sessionmgr.manager.transitions import RecordTransitions
from sessionmgr.model import (
    TERMINAL,
    TERMINAL_TYPES,
    FailureKind,
    MessageReceived,
    MessageStreamed,
    PlanUpdated,
    RunStarted,
    RunStatus,
    TurnCompleted,
)
from sessionmgr.otp import Continue
from sessionmgr.store import Append, AppendResult, MemoryStore, StoreClosed
from sessionmgr.testing.scripted_provider import Finish, Hang, Say, Wait
from tests.manager.harness import ManagerHarness, open_harness, run_scripted, types

PACE = 0.02
SLOW_PACE = 0.6 * EPOCH
FLOOD = 60_000
"""Bytes of one read of a flood, as the adapter reports them."""


class PiecesAdapter(ProviderAdapter):
    """An adapter that streams pieces of text, one each twentieth of a second or many at once."""

    name = "pieces"
    capabilities: ClassVar[Capabilities] = Capabilities(streaming=NATIVE)

    async def run(self, run: RunContext) -> None:
        await run.emit(RunStarted(provider_session_id=run.session_id))
        how, _, number = run.prompt.partition(" ")
        if how == "heedless":
            for _ in range(1_000_000):  # it crashes before
                run.emit_nowait(MessageStreamed(delta="x" * 1000), size=10_000)
        pace = SLOW_PACE if how == "slow" else PACE
        for _ in range(int(number)):
            if how == "flood":
                run.emit_nowait(MessageStreamed(delta="x"), size=FLOOD)
            else:
                await trio.sleep(pace)
                run.emit_nowait(MessageStreamed(delta="y "), size=300)
            await run.room()
        await run.finish(stop_reason="end_turn")


class WatchedStore(MemoryStore):
    """A store that records the groups and their times, and takes a while for each group."""

    def __init__(self, delay: float = 0.0) -> None:
        super().__init__()
        self.delay = delay
        self.groups: list[tuple[float, list[Append]]] = []
        self.thawed = trio.Event()
        self.thawed.set()
        self.lost = 0
        """The number of groups that are stored without an answer."""

    async def append_all(self, appends: Sequence[Append]) -> Sequence[AppendResult | Exception]:
        self.groups.append((trio.current_time(), list(appends)))
        await self.thawed.wait()
        await trio.sleep(self.delay)
        outcomes = await super().append_all(appends)
        if self.lost:
            self.lost -= 1
            raise StoreClosed("the store")
        return outcomes

    def streamed(self) -> list[tuple[float, list[Append]]]:
        """Return the groups with nothing but pieces of text."""
        return [
            (at, group)
            for at, group in self.groups
            if {row.type for each in group for row in each.rows} == {"message_streamed"}
        ]


async def start(house: ManagerHarness, prompt: str) -> RunHandle:
    return await (await house.manager.open_session("pieces")).submit(prompt)


async def test_a_lone_session_that_speaks_now_and_then_is_written_at_once(
    autojump_clock: MockClock,
) -> None:
    store = WatchedStore()
    async with open_harness(store=store, others={"pieces": PiecesAdapter}) as house:
        run = await start(house, "paced 50")
        late = [
            trio.current_time() % PACE async for event in run if event.type == "message_streamed"
        ]
        assert len(late) == 50
        assert all(min(each, PACE - each) < 1e-6 for each in late)


async def test_many_sessions_that_stream_share_transactions(autojump_clock: MockClock) -> None:
    store = WatchedStore(delay=0.001)
    async with open_harness(store=store, others={"pieces": PiecesAdapter}) as house:
        runs: list[RunHandle] = []
        for _ in range(40):
            runs.append(await start(house, "paced 100"))
            await trio.sleep(0.0005)
        for run in runs:
            await run.result()
    begun = [at for at, _ in store.streamed()]
    steady = [at for at in begun if begun[0] + 3 * EPOCH < at < begun[-1] - 3 * EPOCH]
    gaps = [after - before for before, after in pairwise(steady)]
    assert gaps
    assert min(gaps) > SHORT_WINDOW
    assert sum(gaps) / len(gaps) > WINDOW - 0.001
    # No session waits for longer than the window and the group being written.
    assert max(gaps) <= WINDOW + PACE
    sizes = Counter(len(group) for at, group in store.streamed() if at in steady)
    assert min(sizes) > 10


@pytest.mark.parametrize("speakers", [15, 40])
async def test_sessions_that_stream_slowly_share_transactions_as_well(
    autojump_clock: MockClock, speakers: int
) -> None:
    store = WatchedStore(delay=0.001)
    async with open_harness(store=store, others={"pieces": PiecesAdapter}) as house:
        runs: list[RunHandle] = []
        for _ in range(speakers):
            runs.append(await start(house, "slow 50"))
            await trio.sleep(SLOW_PACE / speakers)
        for run in runs:
            await run.result()
    begun = [at for at, _ in store.streamed()]
    steady = [at for at in begun if begun[0] + 3 * EPOCH < at < begun[-1] - 3 * EPOCH]
    gaps = [after - before for before, after in pairwise(steady)]
    assert len(gaps) > 20
    assert min(gaps) > WINDOW - 0.001


async def test_a_session_that_many_have_left_alone_is_written_at_once_again(
    autojump_clock: MockClock,
) -> None:
    async with open_harness(others={"pieces": PiecesAdapter}) as house:
        for run in [await start(house, "paced 20") for _ in range(40)]:
            await run.result()
        begun = trio.current_time()
        run = await start(house, "paced 50")
        late = [
            (trio.current_time() - begun) % PACE
            async for event in run
            if event.type == "message_streamed"
        ]
        assert all(min(each, PACE - each) < 1e-6 for each in late[2 * round(EPOCH / PACE) :])


async def test_a_command_waits_for_no_window(autojump_clock: MockClock) -> None:
    store = WatchedStore()
    async with open_harness(store=store, others={"pieces": PiecesAdapter}) as house:
        runs = [await start(house, "paced 200") for _ in range(40)]
        await trio.sleep(1)
        for _ in range(20):
            began = trio.current_time()
            other = await house.start(Hang())
            assert trio.current_time() == began
            other.cancel()
            await other.result()
            assert trio.current_time() == began
            await trio.sleep(0.0107)
        for run in runs:
            await run.result()


async def test_a_flood_does_not_starve_its_neighbours(autojump_clock: MockClock) -> None:
    store = WatchedStore(delay=0.01)
    async with open_harness(store=store, others={"pieces": PiecesAdapter}) as house:
        floods = [await start(house, "flood 10000") for _ in range(3)]
        await trio.sleep(0.3)  # their inboxes are full
        with trio.fail_after(20 * (PACE + 2 * 0.01 + WINDOW) + 0.5):
            quiet = await start(house, "paced 20")
            await quiet.result()
        assert not any(run.status in TERMINAL for run in floods)
        for run in floods:
            assert (await run.result()).status is RunStatus.COMPLETED
        # Each flood has its turn as well, and no group is much larger than the limit.
        sizes = [sum(len(each.rows) for each in group) * FLOOD for _, group in store.groups]
        assert max(sizes) < 6 << 20
        full = [group for _, group in store.groups if len(group) >= 3]
        assert len(full) > len(store.groups) / 2


async def test_who_reads_along_is_woken_once_for_a_batch(autojump_clock: MockClock) -> None:
    store = WatchedStore(delay=1.0)
    async with open_harness(store=store, others={"pieces": PiecesAdapter}) as house:
        run = await start(house, "paced 300")
        cursor = house.manager.subscribe(run.session_id)
        sizes: list[int] = []
        while batch := await cursor.batch():
            sizes.append(len(batch))
            if batch[-1].type == "run_completed":
                break
        appends = [each for _, group in store.groups for each in group]
        assert len(sizes) <= len(appends)
        assert sum(sizes) == sum(len(each.rows) for each in appends)
        assert max(sizes) >= 40


async def test_a_store_that_starts_again_in_the_middle_of_a_group_costs_nothing(
    autojump_clock: MockClock,
) -> None:
    store = WatchedStore(delay=0.002)
    async with open_harness(store=store, others={"pieces": PiecesAdapter}) as house:
        runs = [await start(house, "paced 100") for _ in range(10)]
        for _ in range(5):
            await trio.sleep(0.35)
            store.lost = 1
        for run in runs:
            assert (await run.result()).status is RunStatus.COMPLETED
            seen = [event.seq async for event in run]
            assert seen == list(range(2, 105))
    sent = Counter((each.session_id, each.first, each.batch) for _, g in store.groups for each in g)
    assert len({key[:2] for key in sent}) == len(sent), "a batch was sent under another name"
    assert max(sent.values()) == 2


async def test_a_cancel_ends_the_work_while_the_store_hangs(autojump_clock: MockClock) -> None:
    over: list[str] = []

    class Watching(PiecesAdapter):
        async def run(self, run: RunContext) -> None:
            try:
                await run.emit(RunStarted(provider_session_id=run.session_id))
                await trio.sleep_forever()
            finally:
                over.append(run.run_id)

    store = WatchedStore()
    async with open_harness(store=store, others={"pieces": Watching}) as house:
        runs = [await start(house, "x") for _ in range(5)]
        await trio.sleep(1)
        store.thawed = trio.Event()
        for run in runs:
            run.cancel()
        await trio.sleep(10)
        assert all(run.status is RunStatus.RUNNING for run in runs)
        assert len(over) == 5
        store.thawed.set()
        for run in runs:
            assert (await run.result()).status is RunStatus.CANCELLED


async def test_a_sender_that_waits_for_no_room_crashes_alone(autojump_clock: MockClock) -> None:
    store = WatchedStore(delay=0.01)
    async with open_harness(store=store, others={"pieces": PiecesAdapter}) as house:
        quiet = await start(house, "paced 20")
        heedless = await start(house, "heedless 0")
        result = await heedless.result()
        assert result.failure is not None
        assert result.failure.kind is FailureKind.ADAPTER_CRASHED
        assert InboxFull.__name__ in result.failure.message
        assert (await quiet.result()).status is RunStatus.COMPLETED


async def test_the_status_tells_what_waits_to_be_stored(autojump_clock: MockClock) -> None:
    store = WatchedStore()
    async with open_harness(store=store, others={"pieces": PiecesAdapter}) as house:
        assert house.manager.status().inboxes.items == 0
        run = await start(house, "paced 100")
        await trio.sleep(1)
        store.thawed = trio.Event()
        await trio.sleep(0.5)
        status = house.manager.status().inboxes
        assert 20 < status.items == status.fullest <= status.peak < status.limit
        assert status.size >= 300 * status.items
        store.thawed.set()
        await run.result()
        assert house.manager.status().inboxes.size == 0


async def test_an_unexpected_exception_of_the_store_costs_only_who_causes_it(
    autojump_clock: MockClock,
) -> None:
    class Picky(WatchedStore):
        async def append_all(self, appends: Sequence[Append]) -> Sequence[AppendResult | Exception]:
            if any(b'"poison"' in row.body for each in appends for row in each.rows):
                await trio.lowlevel.checkpoint()
                raise ZeroDivisionError
            return await super().append_all(appends)

    async with open_harness(store=Picky(delay=0.01), others={"pieces": PiecesAdapter}) as house:
        spared = [await start(house, "paced 50") for _ in range(10)]
        doomed = await house.start(Wait(seconds=0.5), Say(text="poison"), Finish())
        result = await doomed.result()
        assert result.failure is not None
        assert result.failure.kind is FailureKind.MANAGER_CRASHED
        for run in spared:
            assert (await run.result()).status is RunStatus.COMPLETED


@pytest.mark.parametrize("number", [1, 5])
async def test_a_recorder_that_crashes_ends_its_session_alone(
    autojump_clock: MockClock, number: int
) -> None:
    store = WatchedStore(delay=0.01)
    async with open_harness(store=store, others={"pieces": PiecesAdapter}) as house:
        spared = [await start(house, "paced 50") for _ in range(5)]
        runs = [await house.start(Hang()) for _ in range(number)]
        tables = house.manager._state  # pyright: ignore[reportPrivateUsage]
        inboxes = [tables.live_sessions[run.session_id].inbox for run in runs]
        for inbox in inboxes:
            inbox.put("no command")  # which no recorder can process
        for run in runs:
            result = await run.result()
            assert result.failure is not None
            assert result.failure.kind is FailureKind.MANAGER_CRASHED
        for run in spared:
            assert (await run.result()).status is RunStatus.COMPLETED
        assert (await (await start(house, "paced 5")).result()).status is RunStatus.COMPLETED


def crash() -> None:
    raise ZeroDivisionError


def crash_in_effect(_: RecordTransitions, draft: AppendBatch, run: RunState) -> None:
    """Store an event whose effect crashes."""
    draft.write(run, PlanUpdated(entries=()))
    draft.effects.append(crash)


def crash_in_adopt(_: RecordTransitions, draft: AppendBatch, run: RunState) -> None:
    """Store a piece of text of an unknown run."""
    draft.write(run, PlanUpdated(entries=()))
    no_run = cast("RunState", None)
    draft._defer(no_run, [MessageStreamed(delta="x")])  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("crashes", [crash_in_adopt, crash_in_effect])
async def test_a_recorder_that_crashes_after_the_commit_ends_its_session_alone(
    autojump_clock: MockClock, crashes: Callable[[RecordTransitions, AppendBatch, RunState], None]
) -> None:
    async with open_harness(
        store=WatchedStore(delay=0.01), others={"pieces": PiecesAdapter}
    ) as house:
        spared = await start(house, "paced 50")
        session = await house.manager.open_session("actor")
        run = await session.submit(run_scripted(Hang()))
        await trio.sleep(0.5)
        tables = house.manager._state  # pyright: ignore[reportPrivateUsage]
        state = tables.runs[run.id]
        state.inbox.put(RecorderCommand(crashes, (state,)))
        result = await run.result()
        assert result.failure is not None
        assert result.failure.kind is FailureKind.MANAGER_CRASHED
        assert (await types(run))[-2:] == ["plan_updated", "run_failed"]
        await state.gone.wait()
        assert (await spared.result()).status is RunStatus.COMPLETED
        assert (await (await session.submit("again")).result()).text == "again"
        rows = (await house.store.events(session.id)).rows
        assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
        ends = [row.run_id for row in rows if row.type in TERMINAL_TYPES]
        assert ends.count(run.id) == 1


class TurnAdapter(ProviderAdapter):
    """An adapter that ends its turn and, some scheduler ticks later, its run, as real ones do.

    While it is being stopped, it reports the consequences one by one.
    """

    name = "turn"
    capabilities: ClassVar[Capabilities] = Capabilities(streaming=NATIVE)
    farewell: ClassVar[float] = 0.0

    async def init(self) -> Continue | None:
        self._asked: dict[str, trio.Event] = {}
        return await super().init()

    async def run(self, run: RunContext) -> None:
        asked = self._asked[run.run_id] = trio.Event()
        await run.emit(RunStarted(provider_session_id=run.session_id))
        if run.prompt == "until it is stopped":
            await asked.wait()
            for text in ("well", "then"):
                await trio.sleep(self.farewell)
                run.emit_nowait(MessageReceived(content=text))
        else:
            await trio.sleep(1)
        run.emit_nowait(TurnCompleted(stop_reason="end_turn"))
        for _ in range(3):
            await trio.lowlevel.checkpoint()
        if run.cancelling is None:
            await run.finish(stop_reason="end_turn")

    async def interrupt(self, run: RunContext) -> None:
        await trio.lowlevel.checkpoint()
        self._asked[run.run_id].set()


def types_of(group: Sequence[Append]) -> list[str]:
    return [row.type for each in group for row in each.rows]


async def test_the_end_of_a_turn_and_of_its_run_are_one_append(
    autojump_clock: MockClock,
) -> None:
    store = WatchedStore()
    async with open_harness(store=store, others={"turn": TurnAdapter}) as house:
        session = await house.manager.open_session("turn")
        result = await (await session.submit("go on")).result()
        assert result.status is RunStatus.COMPLETED
    (group,) = [types_of(each) for _, each in store.groups if "turn_completed" in types_of(each)]
    assert group == ["turn_completed", "run_completed"]


@pytest.mark.parametrize(
    ("farewell", "together"),
    [
        (WINDOW / 4, [["message_received", "message_received", "turn_completed", "run_cancelled"]]),
        (
            WINDOW * 4,
            [
                ["message_received"],
                ["message_received", "turn_completed", "run_cancelled"],
            ],
        ),
    ],
    ids=["soon", "late"],
)
async def test_what_a_stopped_run_still_says_is_stored_with_its_end_or_after_a_window(
    autojump_clock: MockClock,
    monkeypatch: pytest.MonkeyPatch,
    farewell: float,
    together: list[list[str]],
) -> None:
    monkeypatch.setattr(TurnAdapter, "farewell", farewell)
    store = WatchedStore()
    async with open_harness(store=store, others={"turn": TurnAdapter}) as house:
        session = await house.manager.open_session("turn")
        run = await session.submit("until it is stopped")
        await trio.sleep(1)
        before, begun = len(store.groups), trio.current_time()
        run.cancel()
        assert (await run.result()).status is RunStatus.CANCELLED
        assert trio.current_time() - begun == pytest.approx(2 * farewell)
        groups = store.groups[before:]
        assert [types_of(group) for _, group in groups] == together
        if len(groups) > 1:
            assert groups[0][0] - begun == pytest.approx(farewell + WINDOW)


def test_the_windows_are_in_order() -> None:
    assert 0 < SHORT_WINDOW < FLOOR < WINDOW < EPOCH


async def test_a_reader_is_not_held_up_by_a_session_whose_recorder_has_crashed(
    autojump_clock: MockClock,
) -> None:
    contexts: list[RunContext] = []

    class Shared(PiecesAdapter):
        async def run(self, run: RunContext) -> None:
            await run.emit(RunStarted(provider_session_id=run.session_id))
            contexts.append(run)
            await trio.sleep_forever()

    store = WatchedStore()
    async with open_harness(store=store, others={"pieces": Shared}) as house:
        handle = await start(house, "x")
        await trio.sleep(1)
        store.thawed = trio.Event()
        (run,) = contexts
        for _ in range(400):
            run.emit_nowait(MessageStreamed(delta="x"), size=FLOOD)
        async with trio.open_nursery() as reader:  # of a connection that serves other sessions, too
            reader.start_soon(run.room)
            reader.start_soon(run.recorded)
            await trio.sleep(1)
            assert reader.child_tasks
            tables = house.manager._state  # pyright: ignore[reportPrivateUsage]
            live = tables.live_sessions[handle.session_id]
            live.inbox.put("no command")  # which no recorder can process
            store.thawed.set()
            reader.cancel_scope.deadline = trio.current_time() + 10
        assert not reader.cancel_scope.cancelled_caught
        run.emit_nowait(MessageStreamed(delta="x"), size=400 * FLOOD)  # while its task is cancelled
        with trio.fail_after(1):
            await run.room()
        assert (await handle.result()).status is RunStatus.FAILED


async def test_all_runs_that_may_wait_in_a_session_can_be_ended_at_once(
    autojump_clock: MockClock,
) -> None:
    store = WatchedStore()
    async with open_harness(store=store, others={"pieces": PiecesAdapter}) as house:
        session = await house.manager.open_session("pieces")
        runs = [await session.submit("paced 100000") for _ in range(MOST_RUNS)]
        with pytest.raises(InboxFull):
            await session.submit("one too many")
        store.thawed = trio.Event()
        await session.cancel()
        store.thawed.set()
        for run in runs:
            assert (await run.result()).status is RunStatus.CANCELLED
        assert (await (await session.submit("paced 1")).result()).status is RunStatus.COMPLETED
