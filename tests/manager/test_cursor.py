"""Cursors: each reader sees each event once, in order, and delays no other task."""

import tracemalloc

import pytest
import trio
from hypothesis import given, settings, strategies as st
from trio.testing import MockClock

from sessionmgr.manager import Clocks, Cursor, RunHandle
from sessionmgr.model import AnyEvent, RunStatus
from sessionmgr.store import EventPage, MemoryStore, StoreUnusable, UnknownId
from sessionmgr.testing.scripted_provider import Deaf, Flood, Hang, Repeat, Say, Wait
from tests.manager.harness import ManagerHarness, collect, open_harness, run_scripted, stored, types


async def read(cursor: Cursor, seen: list[int], *, pause: float = 0.0, until: int = 0) -> None:
    async for event in cursor:
        seen.append(event.seq)
        if event.seq == until:
            return
        if pause:
            await trio.sleep(pause)


async def last(house: ManagerHarness, session_id: str) -> int:
    return (await house.store.session(session_id)).last_seq


async def test_several_cursors_see_everything_each_in_order(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        run = await house.start(Repeat(times=30, steps=(Say(text="x", deltas=3), Wait(seconds=1))))
        seen: list[list[int]] = [[] for _ in range(10)]
        async with trio.open_nursery() as nursery:
            for number, numbers in enumerate(seen):
                await trio.sleep(number)
                nursery.start_soon(read, aiter(run), numbers)
        everything = list(range(2, await last(house, run.session_id) + 1))
        assert all(numbers == everything for numbers in seen)


async def test_a_cursor_of_a_session_goes_from_any_number_over_all_its_runs(
    autojump_clock: MockClock,
) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        seen: list[list[int]] = [[], [], []]
        first = await session.submit("a")
        async with trio.open_nursery() as nursery:
            for after, numbers in zip((0, 3, 7), seen, strict=True):
                cursor = house.manager.subscribe(session.id, after=after)
                nursery.start_soon(read, cursor, numbers)
            await first.result()
            for pause in (1, 100, 3):  # the session sleeps and wakes
                await trio.sleep(pause)
                await (await session.submit("b")).result()
            await trio.sleep(30)
            nursery.cancel_scope.cancel()
        end = await last(house, session.id)
        assert seen == [list(range(after + 1, end + 1)) for after in (0, 3, 7)]


async def test_a_cursor_that_is_there_before_the_first_run_sees_it_all(
    autojump_clock: MockClock,
) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        seen: list[int] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read, house.manager.subscribe(session.id), seen)
            await trio.sleep(10)
            await (await session.submit("a")).result()
            await trio.sleep(1)
            nursery.cancel_scope.cancel()
        assert seen == list(range(1, await last(house, session.id) + 1))


async def test_a_run_that_is_long_over_is_read_from_its_first_to_its_last(
    autojump_clock: MockClock,
) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        run = await session.submit("a")
        await run.result()
        await (await session.submit("b")).result()
        await trio.sleep(1000)
        names = await types(run)
        assert (names[0], names[-1]) == ("message_sent", "run_completed")
        by_id = [event async for event in await house.manager.events(run.id)]
        assert [event.type for event in by_id] == names
        assert {event.run_id for event in by_id} == {run.id}
        assert [event async for event in house.manager.events(run.id)] == by_id


async def test_a_cursor_of_a_run_ends_with_it_and_each_is_a_new_one(
    autojump_clock: MockClock,
) -> None:
    async with open_harness() as house:
        run = await house.start(Say(text="x"), Wait(seconds=5))
        with trio.fail_after(6):
            first = await types(run)
        assert first[-1] == "run_completed"
        assert await types(run) == first


async def test_a_filter_leaves_out_what_it_should_and_nothing_else(
    autojump_clock: MockClock,
) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        seen: list[AnyEvent] = []
        wanted = ["message_received", "run_completed"]
        cursor = house.manager.subscribe(session.id, types=wanted)

        async with trio.open_nursery() as nursery:
            await (await session.submit("a")).result()
            nursery.start_soon(collect, cursor, seen)
            run = await session.submit(run_scripted(Flood(events=1000), Say(text="b")))
            await run.result()
            await trio.sleep(20)
            nursery.cancel_scope.cancel()
        assert [event.type for event in seen] == wanted * 2
        of_run = house.manager.subscribe(session.id, run_id=run.id)
        first = await anext(of_run)
        assert (first.run_id, first.type) == (run.id, "message_sent")


async def test_a_slow_reader_delays_no_task_and_misses_nothing(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        run = await house.start(Repeat(times=600, steps=(Say(text="x"), Wait(seconds=0.01))))
        seen: list[int] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: read(aiter(run), seen, pause=1))
            before = trio.current_time()
            assert (await run.result()).status is RunStatus.COMPLETED
            assert trio.current_time() - before == pytest.approx(6, abs=0.5)
            assert len(seen) < 10
        assert seen == list(range(2, await last(house, run.session_id) + 1))


async def test_a_reader_that_stops_reading_costs_no_memory(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        run = await house.start(Wait(seconds=1), Flood(events=3000, size=1000))
        cursors = [aiter(run) for _ in range(50)]
        for cursor in cursors:
            await anext(cursor)
        tracemalloc.start()
        await run.result()
        grown, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        # The store in memory has them once: 50 readers with copies would have 150 MB.
        assert grown < 25_000_000
        seen: list[int] = []
        await read(cursors[-1], seen)
        assert len(seen) == await last(house, run.session_id) - 2


async def test_closing_a_cursor_harms_no_other(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        run = await house.start(Repeat(times=5, steps=(Say(text="x"), Wait(seconds=1))))
        closed, other = aiter(run), aiter(run)
        await anext(closed)
        await closed.aclose()
        with pytest.raises(StopAsyncIteration):
            await anext(closed)
        seen: list[int] = []
        await read(other, seen)
        assert seen == list(range(2, await last(house, run.session_id) + 1))


async def test_a_reader_that_is_cancelled_can_go_on_where_it_was(
    autojump_clock: MockClock,
) -> None:
    async with open_harness() as house:
        run = await house.start(Repeat(times=20, steps=(Say(text="x"), Wait(seconds=1))))
        cursor, seen = aiter(run), list[int]()
        for _ in range(100):
            with trio.move_on_after(0.3):
                await read(cursor, seen)
        await read(cursor, seen)
        assert seen == list(range(2, await last(house, run.session_id) + 1))


async def test_a_cursor_of_nothing_says_so(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        with pytest.raises(UnknownId):
            await anext(house.manager.subscribe("ses_nothing"))
        with pytest.raises(UnknownId):
            await house.manager.events("run_nothing")
        with pytest.raises(UnknownId):
            await anext(house.manager.events("run_nothing"))


async def test_a_run_continues_without_a_reader(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        run = await house.start(Flood(events=5000, size=2000), Say(text="done"))
        await trio.sleep(10)
        assert run.status is RunStatus.COMPLETED


async def test_a_closed_session_ends_its_cursors_after_its_last_event(
    autojump_clock: MockClock,
) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        run = await session.submit(run_scripted(Wait(seconds=3), Say(text="x")))
        await trio.sleep(1)
        seen: list[AnyEvent] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(collect, house.manager.subscribe(session.id), seen)
            await session.close()
            await run.result()
        assert [event.type for event in seen] == await stored(house, session.id)
        assert seen[-1].type == "session_closed"


class UnreadableEventStore(MemoryStore):
    """A store that accepts all appends, and whose events cannot be read."""

    async def events(self, *_: object, **__: object) -> EventPage:
        await trio.lowlevel.checkpoint()
        raise StoreUnusable("the store", "its disk cannot be read")


async def test_who_follows_closely_sees_the_last_event_though_the_store_cannot_be_read(
    autojump_clock: MockClock,
) -> None:
    async with open_harness(store=UnreadableEventStore(), lawful=False) as house:
        session = await house.manager.open_session("actor")
        run = await session.submit(run_scripted(Wait(seconds=3), Say(text="x")))
        seen: list[AnyEvent] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(collect, house.manager.subscribe(session.id), seen)
            await session.close()
            await run.result()
        assert seen[-1].type == "session_closed"


@pytest.mark.parametrize("pause", [0, 20], ids=["awake", "asleep"])
async def test_a_closed_session_takes_no_more_runs(autojump_clock: MockClock, pause: float) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        run = await session.submit("a")
        await run.result()
        await trio.sleep(pause)
        await session.close()
        await session.close()
        assert (await house.store.session(session.id)).state == "closed"
        assert (await stored(house, session.id)).count("session_closed") == 1
        with pytest.raises(Exception, match="closed"):
            await session.submit("b")
        with pytest.raises(Exception, match="closed"):
            await run.append("b")
        again = await house.manager.session(session.id)
        with pytest.raises(Exception, match="closed"):
            await again.submit("b")


@pytest.mark.parametrize("pause", [0.0, 4.99, 5.0, 5.01, 6.0])
async def test_a_session_is_closed_once_however_often_and_whenever(
    autojump_clock: MockClock, pause: float
) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        await session.submit("a")
        await trio.sleep(0.01)
        for _ in range(3):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(session.close)
                nursery.start_soon(session.close)
            await trio.sleep(pause)
        assert (await stored(house, session.id)).count("session_closed") == 1


async def test_a_session_that_is_closed_before_its_first_run_ends_its_cursors(
    autojump_clock: MockClock,
) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        seen: list[AnyEvent] = []
        with trio.fail_after(10):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(collect, house.manager.subscribe(session.id), seen)
                await trio.sleep(1)
                await session.close()
        assert seen == []
        with pytest.raises(Exception, match="closed"):
            await session.submit("a")
        assert (await house.store.sessions()).rows == ()


@given(
    pauses=st.lists(st.sampled_from([0.0, 0.1, 1.0, 7.0]), min_size=1, max_size=6),
    readers=st.lists(
        st.tuples(st.integers(0, 30), st.sampled_from([0.0, 0.3, 2.0])), min_size=1, max_size=4
    ),
)
@settings(max_examples=40)
def test_a_reader_from_any_position_sees_each_event_once_in_order(
    pauses: list[float], readers: list[tuple[int, float]]
) -> None:
    async def main() -> None:
        async with open_harness() as house:
            session = await house.manager.open_session("actor")
            await (await session.submit("first")).result()
            seen: list[list[int]] = [[] for _ in readers]
            async with trio.open_nursery() as nursery:
                for (after, pause), numbers in zip(readers, seen, strict=True):
                    cursor = house.manager.subscribe(session.id, after=after)
                    nursery.start_soon(lambda c, n, p: read(c, n, pause=p), cursor, numbers, pause)
                for pause in pauses:
                    await trio.sleep(pause)
                    run: RunHandle = await session.submit(
                        run_scripted(Flood(events=5), Say(text="x"))
                    )
                    await run.result()
                await trio.sleep(1000)
                nursery.cancel_scope.cancel()
            end = await last(house, session.id)
            assert seen == [list(range(after + 1, end + 1)) for after, _ in readers]

    trio.run(main, clock=MockClock(autojump_threshold=0))


async def test_a_run_without_a_handle_is_read_to_its_end(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        run = await house.start(Hang())
        names: list[str] = []

        async def watch() -> None:
            names.extend(await types(run))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch)
            await trio.sleep(1)
            await house.manager.cancel(run.id)
        assert names[-1] == "run_cancelled"


async def test_nothing_is_stored_after_a_sessions_last_event(autojump_clock: MockClock) -> None:
    seen: list[int] = []
    async with open_harness(clocks=Clocks(close=2)) as house:
        session = await house.manager.open_session("actor")
        run = await session.submit(run_scripted(Deaf(seconds=5), Say(text="too late")))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read, house.manager.subscribe(session.id), seen)
            await trio.sleep(0.1)
            run.cancel()
            await session.close()
            await trio.sleep(10)
        names = await stored(house, session.id)
        assert names[-2:] == ["run_cancelled", "session_closed"]
        assert seen == list(range(1, len(names) + 1))
