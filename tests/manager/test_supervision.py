"""A crash ends what depends on the crashed part, with the right failure, and nothing else."""

import pytest
import trio
from msgspec.structs import replace
from trio.testing import MockClock

from sessionmgr.adapter import ProviderAdapter, RunContext, StartRefused
from sessionmgr.manager import Clocks, ProviderDown, RecorderUnavailable, RunHandle, SessionBusy
from sessionmgr.model import (
    AnyEvent,
    Cost,
    FailureKind,
    MessageSent,
    Provenance,
    Run,
    RunResult,
    RunStarted,
    RunStatus,
    Session,
    SessionCreated,
    TokenUsageUpdated,
    Usage,
    encode_event,
    encode_json,
    stamp,
)
from sessionmgr.otp import Continue
from sessionmgr.store import IdTaken, MemoryStore, StoreClosed, StoreFull
from sessionmgr.store.rows import (
    Append,
    EventRow,
    LeaseOwner,
    LedgerRow,
    NewSession,
    RunRow,
    StoredSession,
)
from sessionmgr.testing.faulty_store import ANY, FaultyStore
from sessionmgr.testing.scripted_provider import (
    CrashAdapter,
    Deaf,
    Finish,
    Flood,
    Hang,
    Repeat,
    Say,
    TurnEnd,
    Use,
    Wait,
    scripted,
)
from tests.manager.harness import (
    ManagerHarness,
    collect,
    events,
    open_harness,
    run_scripted,
    stored,
    types,
)

SPEAKS = (Repeat(times=50, steps=(Say(text="x"), Wait(seconds=0.5))), Finish())


def kind(result: RunResult) -> FailureKind | None:
    return result.failure.kind if result.failure else None


async def crash_adapter(house: ManagerHarness, times: int = 1) -> None:
    for _ in range(times):
        session = await house.manager.open_session("actor")
        await (await session.submit(run_scripted(CrashAdapter(), Hang()))).result()


# --- the adapter -------------------------------------------------------------------------------


async def test_an_adapters_crash_ends_its_runs_and_no_others(autojump_clock: MockClock) -> None:
    async with open_harness(others={"other": scripted("other")}) as house:
        elsewhere = await house.manager.open_session("other")
        spared = await elsewhere.submit(run_scripted(*SPEAKS))
        runs = [await house.start(Say(text="so far"), Hang()) for _ in range(5)]
        await trio.sleep(1)
        await crash_adapter(house)
        for run in runs:
            result = await run.result()
            assert kind(result) is FailureKind.ADAPTER_CRASHED
            assert result.text == "so far"
        assert (await spared.result()).status is RunStatus.COMPLETED


async def test_after_its_crash_an_adapter_takes_runs_again(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        run = await session.submit(run_scripted(CrashAdapter(), Hang()))
        waiting = await session.submit("next")
        await run.result()
        assert (await waiting.result()).text == "next"
        assert (await house.result(Say(text="new"))).text == "new"


async def test_a_provider_that_gives_up_is_down_and_says_so(autojump_clock: MockClock) -> None:
    async with open_harness(others={"other": scripted("other")}) as house:
        elsewhere = await house.manager.open_session("other")
        spared = await elsewhere.submit(run_scripted(*SPEAKS))
        victim = await house.start(Hang())
        session = await house.manager.open_session("actor")
        refusal: StartRefused | None = None
        for _ in range(10):
            try:
                await (await session.submit(run_scripted(CrashAdapter(), Hang()))).result()
            except ProviderDown as error:
                refusal = error
                break
        assert isinstance(refusal, ProviderDown)
        assert "gave up" in str(refusal)
        assert kind(await victim.result()) is FailureKind.ADAPTER_CRASHED
        runs = len((await house.store.runs()).rows)
        with pytest.raises(ProviderDown):
            await session.submit("refused at once")
        assert len((await house.store.runs()).rows) == runs
        assert (await spared.result()).status is RunStatus.COMPLETED
        # it starts again after a pause
        await trio.sleep(refusal.retry_in + 0.1)
        assert (await (await session.submit("again")).result()).text == "again"


async def test_a_provider_is_left_alone_for_longer_each_time_it_gives_up(
    autojump_clock: MockClock,
) -> None:
    pauses: list[float] = []
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        while len(pauses) < 3:
            try:
                await (await session.submit(run_scripted(CrashAdapter(), Hang()))).result()
            except ProviderDown as down:
                pauses.append(down.retry_in)
                await trio.sleep(down.retry_in + 0.1)
    assert pauses == sorted(pauses)
    assert pauses[0] < pauses[-1]


async def test_a_run_that_waited_while_its_provider_went_down_says_why_it_failed(
    autojump_clock: MockClock,
) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        runs = [await session.submit(run_scripted(CrashAdapter(), Hang())) for _ in range(8)]
        waiting = await session.submit("next")
        for run in runs:
            assert kind(await run.result()) is FailureKind.ADAPTER_CRASHED
        result = await waiting.result()
        assert kind(result) is FailureKind.ADAPTER_CRASHED
        assert result.failure is not None
        assert "actor is down" in result.failure.message
        assert "next" not in house.saw("prompt")


class StillbornAdapter(ProviderAdapter):
    name = "stillborn"

    async def init(self) -> Continue | None:
        await trio.lowlevel.checkpoint()
        raise LookupError("no credentials")

    async def run(self, run: RunContext) -> None:
        await run.finish()


async def test_a_provider_that_does_not_come_up_refuses_its_runs_with_the_reason(
    autojump_clock: MockClock,
) -> None:
    async with open_harness(others={"stillborn": StillbornAdapter}) as house:
        neighbour = await house.start(*SPEAKS)
        session = await house.manager.open_session("stillborn")
        for _ in range(5):
            with pytest.raises(ProviderDown, match="no credentials"):
                await session.submit("hello")
        assert len((await house.store.runs()).rows) == 1
        assert (await neighbour.result()).status is RunStatus.COMPLETED


async def test_an_end_that_cannot_be_written_is_a_crash_of_its_run_alone(
    autojump_clock: MockClock,
) -> None:
    class Odd(ProviderAdapter):
        name = "odd"

        async def run(self, run: RunContext) -> None:
            await run.finish(structured=object())  # type: ignore[arg-type]

    async with open_harness(others={"odd": Odd}) as house:
        session = await house.manager.open_session("odd")
        odd, queued = await session.submit("a"), await session.submit("b")
        for run in (odd, queued):
            assert kind(await run.result()) is FailureKind.ADAPTER_CRASHED


# --- the recorder ------------------------------------------------------------------------------


async def test_a_recorders_crash_ends_its_sessions_runs_and_no_others(
    autojump_clock: MockClock,
) -> None:
    store = FaultyStore()
    async with open_harness(store=store) as house:
        spared = await house.start(*SPEAKS)
        session = await house.manager.open_session("actor")
        run = await session.submit(run_scripted(Use(output=3), Wait(seconds=3), TurnEnd(), Hang()))
        queued = await session.submit("queued")
        reader = aiter(run)
        store.raises.append(("turn_completed", RuntimeError("boom")))
        for each in (run, queued):
            result = await each.result()
            assert kind(result) is FailureKind.MANAGER_CRASHED
        assert (await run.result()).usage.output == 3
        assert [event.type async for event in reader][-1] == "run_failed"
        assert house.saw("over") == [""]
        [sent] = [each for each in (await events(queued)) if isinstance(each, MessageSent)][1:]
        assert sent.state == "dropped"
        assert (await (await session.submit("new")).result()).text == "new"
        assert (await spared.result()).status is RunStatus.COMPLETED


@pytest.mark.parametrize("ticks", range(0, 60, 3))
async def test_a_session_accepts_a_run_at_any_moment_of_its_recorders_crash(
    autojump_clock: MockClock, ticks: int
) -> None:
    store = FaultyStore()
    store.delay = lambda _: 0.01
    async with open_harness(store=store) as house:
        spared = await house.start(*SPEAKS)
        session = await house.manager.open_session("actor")
        runs = [await session.submit(run_scripted(Wait(seconds=3), TurnEnd(), Hang()))]
        runs += [await session.submit("queued") for _ in range(3)]
        store.raises.append(("turn_completed", RuntimeError("boom")))
        await trio.sleep_until(3.0 + 0.002 * ticks)
        with trio.fail_after(300):
            new = await session.submit("new")
            for run in runs:
                assert kind(await run.result()) is FailureKind.MANAGER_CRASHED
            result = await new.result()
        # Runs submitted before the crash end with it; later ones run.
        began = "new" in house.saw("prompt")
        assert kind(result) is (None if began else FailureKind.MANAGER_CRASHED)
        assert result.status is (RunStatus.COMPLETED if began else RunStatus.FAILED)
        assert (await (await session.submit("later")).result()).text == "later"
        assert (await spared.result()).status is RunStatus.COMPLETED


async def test_many_recorders_crash_in_one_moment_and_no_other_session_ends(
    autojump_clock: MockClock,
) -> None:
    store = FaultyStore()
    async with open_harness(store=store) as house:
        spared = [await house.start(*SPEAKS) for _ in range(5)]
        doomed = [await house.start(Wait(seconds=3), Use(output=1), Hang()) for _ in range(20)]
        store.raises += [("token_usage_updated", RuntimeError("boom"))] * 20
        for run in doomed:
            assert kind(await run.result()) is FailureKind.MANAGER_CRASHED
        for run in spared:
            assert (await run.result()).status is RunStatus.COMPLETED


async def test_waiters_for_a_recorder_that_crashes_are_released(
    autojump_clock: MockClock,
) -> None:
    store = FaultyStore()
    async with open_harness(store=store) as house:
        run = await house.start(Hang())
        await trio.sleep(1)
        store.raises.append(("message_sent", RuntimeError("boom")))
        with trio.fail_after(60):
            follow_up = await run.append("follow")
            result = await follow_up.run.result()
        assert (follow_up.state, result.status) == ("queued", RunStatus.COMPLETED)
        assert (house.saw("append") + house.saw("prompt")).count("follow") == 1
        assert kind(await run.result()) is FailureKind.MANAGER_CRASHED


async def test_a_run_whose_recorder_crashed_before_it_was_stored_is_admitted_again(
    autojump_clock: MockClock,
) -> None:
    store = FaultyStore()
    async with open_harness(store=store) as house:
        session = await house.manager.open_session("actor")
        store.raises.append(("session_created", RuntimeError("boom")))
        with trio.fail_after(60):
            run = await session.submit("hello")
            assert (await run.result()).text == "hello"
            assert house.saw("prompt") == ["hello"]
            store.raises += [("message_sent", RuntimeError("boom"))] * 20
            await trio.sleep(20)
            with pytest.raises(RecorderUnavailable):
                await session.submit("in vain")
            store.raises.clear()
            assert (await (await session.submit("again")).result()).text == "again"


async def test_a_recorder_that_lost_its_lease_writes_nothing_more(
    autojump_clock: MockClock,
) -> None:
    store = FaultyStore()
    async with open_harness(store=store, lawful=False) as house:
        run = await house.start(Wait(seconds=5), Say(text="too late"), Hang())
        spared = await house.start(*SPEAKS)
        [lease] = await store.leases(run.session_id)
        await store.acquire(
            run.session_id, type(lease.owner)("other boot", 1, 1), now=0, ttl=1, gone=lambda _: True
        )
        with trio.fail_after(600):
            await run.result()
        assert "message_received" not in await stored(house, run.session_id)
        assert (await spared.result()).status is RunStatus.COMPLETED


# --- the store ---------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.parametrize(
    "error", [StoreClosed("x"), StoreFull("x")], ids=lambda error: type(error).__name__
)
async def test_a_store_that_fails_for_a_while_ends_no_run(
    autojump_clock: MockClock, error: Exception, where: str
) -> None:
    store = FaultyStore()
    async with open_harness(store=store) as house:
        faults = store.raises if where == "before" else store.after
        for type_ in ("session_created", "run_started", "message_received", "run_completed"):
            faults += [(type_, error)] * 3
        results = [await house.start(*SPEAKS) for _ in range(3)]
        for run in results:
            assert (await run.result()).status is RunStatus.COMPLETED
        assert faults == []


async def test_a_store_that_is_down_for_half_a_minute_ends_no_run(
    autojump_clock: MockClock,
) -> None:
    store = FaultyStore()
    async with open_harness(store=store) as house:
        runs = [await house.start(*SPEAKS) for _ in range(5)]
        await trio.sleep(3)
        store.closed = True
        await trio.sleep(30)
        assert {run.status for run in runs} == {RunStatus.RUNNING}
        store.closed = False
        for run in runs:
            assert (await run.result()).status is RunStatus.COMPLETED


async def test_no_reader_sees_what_is_not_stored(autojump_clock: MockClock) -> None:
    store = FaultyStore()
    async with open_harness(store=store) as house:
        run = await house.start(Wait(seconds=1), Say(text="x"), Hang())
        seen: list[AnyEvent] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(collect, aiter(run), seen)
            await trio.sleep(0.5)
            store.thawed = trio.Event()
            await trio.sleep(20)
            assert "message_received" not in {event.type for event in seen}
            assert run.status is RunStatus.RUNNING
            store.thawed.set()
            await trio.sleep(1)
            assert "message_received" in {event.type for event in seen}
            run.cancel()


async def test_a_crash_while_the_store_is_down_is_recorded_when_it_is_up_again(
    autojump_clock: MockClock,
) -> None:
    store = FaultyStore()
    async with open_harness(store=store) as house:
        spared = await house.start(*SPEAKS)
        run = await house.start(Wait(seconds=3), Use(output=1), Hang())
        store.raises.append(("token_usage_updated", RuntimeError("boom")))
        await trio.sleep(2.9)
        store.raises += [("run_failed", StoreClosed("x"))] * 3
        result = await run.result()
        assert kind(result) is FailureKind.MANAGER_CRASHED
        assert (await house.manager.result(run.id)) == result
        assert (await spared.result()).status is RunStatus.COMPLETED


async def test_leaving_the_manager_with_a_frozen_store_takes_as_long_as_its_clock_and_no_longer(
    autojump_clock: MockClock,
) -> None:
    store = FaultyStore()
    async with open_harness(store=store, lawful=False, clocks=Clocks(store=20)) as house:
        await house.start(Hang())
        await trio.sleep(1)
        store.thawed = trio.Event()
    assert trio.current_time() <= 1 + 20 + 6 * 5
    assert house.saw("over") == [""]


# --- other managers ----------------------------------------------------------------------------


async def test_two_managers_do_not_end_each_others_runs(autojump_clock: MockClock) -> None:
    store = MemoryStore()
    async with open_harness(store=store) as first:
        run = await first.start(Wait(seconds=100), Say(text="well"))
        async with open_harness(store=store, lawful=False) as second:
            await trio.sleep(1)
            assert run.status is RunStatus.RUNNING
            session = await second.manager.session(run.session_id)
            with pytest.raises(SessionBusy):
                await session.submit("me too")
            other = await second.result(Say(text="mine"))
            assert other.text == "mine"
        assert run.status is RunStatus.RUNNING
        assert (await run.result()).text == "well"
        assert "me too" not in first.saw("prompt")


async def test_to_settle_a_session_ends_no_run_that_comes_meanwhile(
    autojump_clock: MockClock,
) -> None:
    class Slow(MemoryStore):
        async def session(self, session_id: str) -> StoredSession:
            found = await super().session(session_id)
            await trio.sleep(1)
            return found

    async with open_harness(store=Slow()) as house:
        session = await house.manager.open_session("actor")
        await (await session.submit("first")).result()
        await trio.sleep(60)  # it sleeps
        async with trio.open_nursery() as nursery:
            nursery.start_soon(house.manager.settled, session.id)
            await trio.sleep(0.5)
            run = await session.submit(run_scripted(Wait(seconds=5), Say(text="well")))
            assert (await run.result()).text == "well"


async def test_runs_of_a_manager_that_is_gone_are_ended_by_one_that_lives_on(
    autojump_clock: MockClock,
) -> None:
    store = MemoryStore()
    async with open_harness(store=store) as house:
        await house.result(Say(text="x"))
        # Another manager, whose process is gone, has begun a run just now.
        gone = LeaseOwner(boot_id="another", pid=1, start=1, name="gone")
        lease = await store.acquire("ses_of_the_dead", gone, now=0, ttl=90_000)
        await store.append(begun("ses_of_the_dead", "run_of_the_dead", lease.fence))
        await trio.sleep(31)
        assert (await store.run("run_of_the_dead")).status == RunStatus.FAILED


async def test_interrupted_runs_are_reported_in_a_sentence(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    store = MemoryStore()
    gone = LeaseOwner(boot_id="another", pid=1, start=1, name="gone")
    for number in range(2):
        lease = await store.acquire(f"ses_{number}", gone, now=0, ttl=90_000)
        await store.append(begun(f"ses_{number}", f"run_{number}", lease.fence))
    async with open_harness(store=store):
        pass
    (said,) = [each for each in caplog.records if each.levelname == "WARNING"]
    assert said.getMessage() == (
        "2 runs were interrupted when their process died; their ends are now recorded"
    )


async def test_the_cost_of_a_killed_run_is_partial_in_its_result_and_in_the_costs(
    autojump_clock: MockClock,
) -> None:
    store = MemoryStore()
    gone = LeaseOwner(boot_id="another", pid=1, start=1, name="gone")
    lease = await store.acquire("ses_of_the_dead", gone, now=0, ttl=90_000)
    first = begun("ses_of_the_dead", "run_of_the_dead", lease.fence)
    await store.append(first)
    envelope = ("2026-01-01T00:00:01.000Z", "ses_of_the_dead", "run_of_the_dead", "actor")
    reported = TokenUsageUpdated(usage=Usage(), cost=0.5, provenance=Provenance.REPORTED)
    (event,) = stamp([reported], 3, *envelope)
    row = LedgerRow("run_of_the_dead", nano_usd=500_000_000, provenance="reported")
    more = replace(first, batch="c", first=3, new_session=None, ledger=(row,))
    rows = (EventRow(3, "run_of_the_dead", event.type, encode_event(event)),)
    await store.append(replace(more, rows=rows))
    async with open_harness(store=store) as house:
        costs = await house.manager.costs(["ses_of_the_dead", "run_of_the_dead"])
        result = await house.manager.result("run_of_the_dead")
    partial = Cost(usd=0.5, provenance=Provenance.PARTIAL)
    assert result.cost == partial
    assert {id: spent.cost for id, spent in costs.items()} == {
        "ses_of_the_dead": partial,
        "run_of_the_dead": partial,
    }


def begun(session_id: str, run_id: str, fence: int) -> Append:
    envelope = ("2026-01-01T00:00:00.000Z", session_id)
    (created,) = stamp([SessionCreated()], 1, *envelope, None, "actor")
    (started,) = stamp([RunStarted()], 2, *envelope, run_id, "actor")
    run = Run(id=run_id, session_id=session_id, provider="actor", status=RunStatus.RUNNING)
    session = Session(id=session_id, provider="actor", cwd="/")
    return Append(
        session_id=session_id,
        fence=fence,
        batch="b",
        first=1,
        at=0,
        rows=(
            EventRow(1, None, created.type, encode_event(created)),
            EventRow(2, run_id, started.type, encode_event(started)),
        ),
        runs=(RunRow(run_id, "running", encode_json(run)),),
        new_session=NewSession(
            session_id=session_id, provider="actor", at=0, body=encode_json(session)
        ),
    )


async def test_a_session_is_opened_once(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        first = await house.manager.open_session("actor", session_id="ses_mine")
        with pytest.raises(IdTaken):
            await house.manager.open_session("actor", session_id="ses_mine")
        await (await first.submit("x")).result()
        await trio.sleep(60)
        with pytest.raises(IdTaken):
            await house.manager.open_session("actor", session_id="ses_mine")


async def test_a_session_goes_on_under_another_manager_when_the_first_has_let_go(
    autojump_clock: MockClock,
) -> None:
    store = MemoryStore()
    async with open_harness(store=store) as first:
        session = await first.manager.open_session("actor")
        await (await session.submit("one")).result()
        await trio.sleep(20)
        async with open_harness(store=store, lawful=False) as second:
            taken_up = await second.manager.session(session.id)
            assert (await (await taken_up.submit("two")).result()).text == "two"
            await trio.sleep(20)
        assert (await (await session.submit("three")).result()).text == "three"


async def test_a_run_left_open_by_a_manager_that_is_no_more_is_ended_by_the_next(
    autojump_clock: MockClock,
) -> None:
    store = FaultyStore()
    async with open_harness(store=store, lawful=False, clocks=Clocks(store=5, close=1)) as first:
        run = await first.start(Say(text="so far"), Hang())
        await trio.sleep(1)
        store.thawed = trio.Event()
    store.thawed.set()
    assert (await store.run(run.id)).status == "running"
    await trio.sleep(200)  # until its lease has expired
    async with open_harness(store=store) as second:
        result = await second.manager.result(run.id)
        assert kind(result) is FailureKind.MANAGER_CRASHED
        assert result.text == "so far"
        assert result.failure is not None
        assert result.failure.resumable


async def test_the_tree_is_as_it_should_be(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        await house.start(Hang())
        tree = house.manager.tree()
        order = ["launcher", "store", "reconciler", "sessions", "providers", "gate"]
        places = [tree.index(name) for name in order]
        assert places == sorted(places)


async def test_all_ends_are_stored_before_the_manager_is_left(autojump_clock: MockClock) -> None:
    store = FaultyStore()
    store.delay = lambda _: 0.2
    runs: list[RunHandle] = []
    async with open_harness(store=store) as house:
        runs += [await house.start(Hang()) for _ in range(30)]
        runs += [await house.start(Deaf(seconds=3)) for _ in range(5)]
        runs += [await house.start(Flood(events=1000), Hang()) for _ in range(2)]
    for run in runs:
        assert (await store.run(run.id)).status == run.status == "cancelled"
        assert (await types(run))[-1] == "run_cancelled"


async def test_a_start_that_is_refused_because_its_recorders_crash_leaves_no_session(
    autojump_clock: MockClock,
) -> None:
    store = FaultyStore()
    store.raises += [(ANY, RuntimeError("boom"))] * 20
    async with open_harness(store=store) as house:
        session = await house.manager.open_session("actor")
        with pytest.raises(RecorderUnavailable):
            await session.submit("in vain")
        assert (await store.sessions()).rows == ()
