"""Streams: many tasks, a limited number at a time, and a consumer that sets the pace."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator
from typing import NamedTuple

import pytest
import trio
from hypothesis import given, strategies as st
from trio.testing import wait_all_tasks_blocked

from sessionmgr.otp import MaxChildren, Stream, TaskCancelled, TaskCrashed, TaskSupervisor
from tests.otp.puppets import CrashError, in_virtual_time


class StreamItem(NamedTuple):
    """A piece of work: which, for how long, and whether it crashes."""

    number: int
    seconds: int
    crashes: bool


class Visitor:
    """Looks at results as they come."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    async def look_at(self, results: AsyncIterator[int]) -> None:
        async for result in results:
            assert result not in self.seen
            self.seen.append(result)


class Workshop:
    """Works on pieces, and knows how many at once."""

    def __init__(self) -> None:
        self.at_work = 0
        self.most = 0
        self.begun: list[int] = []
        self.ended: list[int] = []

    async def make(self, piece: StreamItem) -> int:
        self.begun.append(piece.number)
        self.at_work += 1
        self.most = max(self.most, self.at_work)
        try:
            await trio.sleep(piece.seconds)
        finally:
            self.at_work -= 1
        self.ended.append(piece.number)
        if piece.crashes:
            raise CrashError(piece.number)
        return piece.number


pieces = st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=20).map(
    lambda plans: [StreamItem(number, *plan) for number, plan in enumerate(plans)]
)


@given(
    pieces=pieces,
    limit=st.integers(1, 5),
    ordered=st.booleans(),
    consumption=st.integers(0, 3),
    schedule=st.random_module(),
)
def test_a_stream_gives_every_result_once_and_never_runs_more_than_it_may(
    pieces: list[StreamItem], limit: int, ordered: bool, consumption: int, schedule: object
) -> None:
    shop = Workshop()
    results: list[int] = []
    crashed: list[int] = []

    async def main() -> None:
        async with (
            TaskSupervisor() as tasks,
            tasks.stream(
                shop.make,
                iter(pieces),
                max_concurrency=limit,
                ordered=ordered,
                return_exceptions=True,
            ) as stream,
        ):
            async for result in stream:
                if isinstance(result, TaskCrashed):
                    crashed.append(number_of(result))
                results.append(result if isinstance(result, int) else number_of(result))
                await trio.sleep(consumption)

    in_virtual_time(main)
    numbers = [piece.number for piece in pieces]
    assert shop.most <= limit
    assert shop.most >= min(limit, len(pieces), 1)
    assert sorted(results) == numbers
    assert sorted(shop.begun) == numbers
    assert not ordered or results == numbers
    assert sorted(crashed) == [piece.number for piece in pieces if piece.crashes]


async def test_results_come_in_the_order_of_the_items(autojump_clock: object) -> None:
    shop = Workshop()
    slow_first = [StreamItem(0, 3, False), StreamItem(1, 1, False), StreamItem(2, 2, False)]
    async with TaskSupervisor() as tasks, tasks.stream(shop.make, slow_first) as results:
        assert [result async for result in results] == [0, 1, 2]
        assert shop.ended == [1, 2, 0]
        assert trio.current_time() == 3.0


async def test_results_come_as_they_are_ready_when_order_does_not_matter(
    autojump_clock: object,
) -> None:
    shop = Workshop()
    slow_first = [StreamItem(0, 3, False), StreamItem(1, 1, False), StreamItem(2, 2, False)]
    async with (
        TaskSupervisor() as tasks,
        tasks.stream(shop.make, slow_first, ordered=False) as results,
    ):
        assert [(result, trio.current_time()) async for result in results] == [
            (1, 1.0),
            (2, 2.0),
            (0, 3.0),
        ]


async def test_the_work_is_done_side_by_side(autojump_clock: object) -> None:
    shop = Workshop()
    async with (
        TaskSupervisor() as tasks,
        tasks.stream(
            shop.make, (StreamItem(n, 1, False) for n in range(20)), max_concurrency=5
        ) as results,
    ):
        assert len([result async for result in results]) == 20
        assert trio.current_time() == 4.0
        assert shop.most == 5


async def test_a_crash_is_raised_where_its_result_would_be(autojump_clock: object) -> None:
    shop = Workshop()
    work = [StreamItem(n, 1, crashes=n == 2) for n in range(5)]
    visitor = Visitor()

    async def consume() -> None:
        async with tasks.stream(shop.make, work, max_concurrency=2) as results:
            await visitor.look_at(results)

    async with TaskSupervisor() as tasks:
        with pytest.raises(TaskCrashed) as crashed:
            await consume()
        assert isinstance(crashed.value.__cause__, CrashError)
        assert crashed.value.__cause__.args == (2,)
        assert visitor.seen == [0, 1]
        assert tasks.which_children() == []


async def test_after_a_crash_a_stream_may_be_read_on(autojump_clock: object) -> None:
    shop = Workshop()
    work = [StreamItem(n, 1, crashes=n == 1) for n in range(4)]
    visitor = Visitor()
    async with TaskSupervisor() as tasks, tasks.stream(shop.make, work) as results:
        with pytest.raises(TaskCrashed):
            await visitor.look_at(results)
        await visitor.look_at(results)
    assert visitor.seen == [0, 2, 3]


async def test_leaving_early_cancels_what_runs_and_waits_for_it(autojump_clock: object) -> None:
    begun: list[int] = []
    cleaned: list[int] = []

    async def stubborn(number: int) -> int:
        begun.append(number)
        try:
            await trio.sleep(number * 10)
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(1)
            cleaned.append(number)
        return number

    async with TaskSupervisor() as tasks:
        async with tasks.stream(stubborn, itertools.count(), max_concurrency=3) as results:
            async for result in results:
                assert result == 0
                break
        assert set(begun) >= {0, 1, 2}
        assert sorted(cleaned) == sorted(begun)
        assert trio.current_time() == 2.0
        assert tasks.which_children() == []


async def test_an_error_in_the_body_cancels_what_runs_and_goes_on_its_way(
    autojump_clock: object,
) -> None:
    shop = Workshop()

    async def consume() -> None:
        async with tasks.stream(shop.make, [StreamItem(0, 9, False)]) as results:
            with trio.move_on_after(1):
                await anext(results)
            raise CrashError

    async with TaskSupervisor() as tasks:
        with pytest.raises(CrashError):
            await consume()
        assert (shop.begun, shop.ended, shop.at_work) == ([0], [], 0)


async def test_a_cancelled_consumer_leaves_nothing_behind(autojump_clock: object) -> None:
    shop = Workshop()
    work = (StreamItem(n, 9, False) for n in itertools.count())
    async with TaskSupervisor() as tasks:
        with trio.move_on_after(10) as scope:
            async with tasks.stream(shop.make, work, max_concurrency=2) as results:
                async for result in results:
                    assert result < 2
        assert scope.cancelled_caught
        assert shop.at_work == 0
        assert tasks.which_children() == []


async def test_a_slow_consumer_holds_up_the_work(autojump_clock: object) -> None:
    shop = Workshop()
    taken: list[int] = []

    def items() -> Iterator[StreamItem]:
        for number in itertools.count():
            taken.append(number)
            yield StreamItem(number, 0, False)

    async with (
        TaskSupervisor() as tasks,
        tasks.stream(shop.make, items(), max_concurrency=3) as results,
    ):
        for consumed in range(1, 20):
            await anext(results)
            await trio.sleep(5)
            assert len(taken) == len(shop.begun) <= consumed + 2 * 3


async def test_nothing_is_taken_before_somebody_wants_it(autojump_clock: object) -> None:
    shop = Workshop()
    work = iter([StreamItem(0, 0, False), StreamItem(1, 0, False)])
    async with TaskSupervisor() as tasks, tasks.stream(shop.make, work):
        await trio.sleep(1)
    assert shop.begun == []
    assert len(list(work)) == 2


async def test_an_error_among_the_items_is_raised_and_the_rest_is_cancelled(
    autojump_clock: object,
) -> None:
    shop = Workshop()

    def items() -> Iterator[StreamItem]:
        yield StreamItem(0, 9, False)
        raise LookupError("no more pieces")

    async def consume() -> None:
        async with tasks.stream(shop.make, items()) as results:
            async for result in results:
                raise AssertionError(result)

    async with TaskSupervisor() as tasks:
        with pytest.raises(LookupError, match="no more pieces"):
            await consume()
        assert (shop.at_work, shop.ended) == (0, [])


async def test_a_full_supervisor_is_an_error_of_the_stream(autojump_clock: object) -> None:
    shop = Workshop()

    async def consume() -> None:
        work = [StreamItem(n, 1, False) for n in range(5)]
        async with tasks.stream(shop.make, work, max_concurrency=3) as results:
            async for result in results:
                raise AssertionError(result)

    async with TaskSupervisor(max_children=2) as tasks:
        with pytest.raises(MaxChildren):
            await consume()
        assert (shop.at_work, shop.ended) == (0, [])


async def test_the_end_of_the_supervisor_ends_the_stream(autojump_clock: object) -> None:
    shop = Workshop()
    ends: list[type[Exception]] = []

    async def consume() -> None:
        with pytest.raises(TaskCancelled) as cancelled:
            async with tasks.stream(shop.make, [StreamItem(0, 9, False)]) as results:
                await anext(results)
        ends.append(cancelled.type)

    async with trio.open_nursery() as nursery, TaskSupervisor() as tasks:
        nursery.start_soon(consume)
        await wait_all_tasks_blocked()
    assert ends == [TaskCancelled]


@given(
    pieces=pieces,
    interruptions=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4)), max_size=10),
    ordered=st.booleans(),
    schedule=st.random_module(),
)
def test_a_reader_that_is_cancelled_loses_no_result(
    pieces: list[StreamItem],
    interruptions: list[tuple[int, int]],
    ordered: bool,
    schedule: object,
) -> None:
    results: list[int] = []
    scopes = [trio.CancelScope()]

    async def interrupt() -> None:
        for seconds, steps in interruptions:
            await trio.sleep(seconds)
            for _ in range(steps):
                await trio.lowlevel.checkpoint()
            scopes[-1].cancel()

    async def read(stream: Stream[int | TaskCrashed]) -> None:
        while len(results) < len(pieces):
            with trio.CancelScope() as scope:
                scopes.append(scope)
                result = await anext(stream)
                results.append(result if isinstance(result, int) else number_of(result))

    async def main() -> None:
        async with (
            TaskSupervisor() as tasks,
            tasks.stream(
                Workshop().make, pieces, ordered=ordered, return_exceptions=True
            ) as stream,
        ):
            with trio.fail_after(100):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(interrupt)
                    await read(stream)
                    nursery.cancel_scope.cancel()

    in_virtual_time(main)
    assert sorted(results) == [piece.number for piece in pieces]


def number_of(crash: TaskCrashed) -> int:
    assert isinstance(crash.__cause__, CrashError)
    number: int = crash.__cause__.args[0]
    return number


async def test_several_may_read_one_stream(autojump_clock: object) -> None:
    shop = Workshop()
    visitor = Visitor()
    work = [StreamItem(n, n % 3, False) for n in range(20)]
    with trio.fail_after(100):
        async with (
            TaskSupervisor() as tasks,
            tasks.stream(shop.make, work, max_concurrency=4) as results,
            trio.open_nursery() as nursery,
        ):
            for _ in range(3):
                nursery.start_soon(visitor.look_at, results)
    assert sorted(visitor.seen) == list(range(20))
    assert shop.most <= 4


async def test_a_stream_is_used_inside_its_block(autojump_clock: object) -> None:
    async with TaskSupervisor() as tasks:
        stream = tasks.stream(Workshop().make, [StreamItem(0, 0, False)])
        with pytest.raises(RuntimeError, match=r"^use a stream inside its block"):
            await anext(stream)
        async with stream:
            assert await anext(stream) == 0
            with pytest.raises(StopAsyncIteration):
                await anext(stream)
        with pytest.raises(StopAsyncIteration):
            await anext(stream)


def test_at_least_one_must_be_allowed_to_run() -> None:
    with pytest.raises(ValueError, match=r"^max_concurrency=0: must be at least 1$"):
        TaskSupervisor().stream(Workshop().make, [], max_concurrency=0)
