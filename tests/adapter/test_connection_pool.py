"""The connection pool in virtual time, with connections that do nothing."""

from collections.abc import AsyncGenerator, Hashable
from contextlib import asynccontextmanager

import msgspec
import pytest
import trio
from hypothesis import given, settings, strategies as st
from trio.testing import MockClock

from sessionmgr.adapter.connections import ConnectionSpec
from sessionmgr.adapter.kit.connection_pool import ConnectionPool, ConnectionState
from sessionmgr.otp import DynamicSupervisor
from sessionmgr.process import Command
from tests.adapter.no_launcher import NoLauncher


class PoolSpec(msgspec.Struct, frozen=True):
    key: Hashable = "a"


class PoolLine:
    """Connection that stays open until the test ends it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.hung_up = trio.Event()
        self.is_closed = False

    async def wait_closed(self) -> None:
        await self.hung_up.wait()


class PoolExchange:
    """Connects, and records each spec."""

    def __init__(self) -> None:
        self.lines: list[PoolLine] = []
        self.slow = 0.0
        self.broken = False

    @asynccontextmanager
    async def connect(self, spec: PoolSpec) -> AsyncGenerator[PoolLine, None]:
        await trio.sleep(self.slow)
        if self.broken:
            raise ConnectionError("connection refused")
        line = PoolLine(len(self.lines))
        self.lines.append(line)
        try:
            yield line
        finally:
            line.is_closed = True

    def open(self) -> list[int]:
        return [line.number for line in self.lines if not line.is_closed]


async def settle() -> None:
    await trio.testing.wait_all_tasks_blocked()


@pytest.fixture
async def owner() -> AsyncGenerator[DynamicSupervisor, None]:
    async with DynamicSupervisor(name="connections") as supervisor:
        yield supervisor


@pytest.fixture
def exchange() -> PoolExchange:
    return PoolExchange()


async def test_an_idle_connection_is_leased_again(
    autojump_clock: MockClock, owner: DynamicSupervisor, exchange: PoolExchange
) -> None:
    pool = ConnectionPool(exchange.connect)
    for _ in range(3):
        async with pool.lease(PoolSpec(), owner) as lease:
            assert lease.connection.number == 0
            assert pool.connection_states() == [ConnectionState.BUSY]
        assert pool.connection_states() == [ConnectionState.IDLE]


async def test_a_busy_one_is_not_shared_unless_it_serves_several(
    autojump_clock: MockClock, owner: DynamicSupervisor, exchange: PoolExchange
) -> None:
    pool = ConnectionPool(exchange.connect)
    async with pool.lease(PoolSpec(), owner) as a, pool.lease(PoolSpec(), owner) as b:
        assert a.connection is not b.connection
    shared = ConnectionPool(exchange.connect, max_leases=2)
    async with shared.lease(PoolSpec(), owner) as a, shared.lease(PoolSpec(), owner) as b:
        assert a.connection is b.connection
        async with shared.lease(PoolSpec(), owner) as c:
            assert c.connection is not a.connection


async def test_of_several_idle_ones_the_last_used_is_leased(
    autojump_clock: MockClock, owner: DynamicSupervisor, exchange: PoolExchange
) -> None:
    pool = ConnectionPool(exchange.connect)
    async with pool.lease(PoolSpec(), owner), pool.lease(PoolSpec(), owner) as b:
        pass
    async with pool.lease(PoolSpec(), owner) as again:
        assert again.connection is b.connection
        async with pool.lease(PoolSpec(), owner) as a:
            pass
    async with pool.lease(PoolSpec(), owner) as again:
        assert again.connection is a.connection
    assert len(exchange.lines) == 2


async def test_what_differs_in_its_key_has_another_connection(
    autojump_clock: MockClock, owner: DynamicSupervisor, exchange: PoolExchange
) -> None:
    pool = ConnectionPool(exchange.connect)
    for key in "aba":
        async with pool.lease(PoolSpec(key), owner):
            pass
    assert len(exchange.lines) == 2


async def test_who_comes_while_it_connects_waits_for_it(
    autojump_clock: MockClock, owner: DynamicSupervisor, exchange: PoolExchange
) -> None:
    exchange.slow = 3.0
    pool = ConnectionPool(exchange.connect, max_leases=10)

    async def use() -> None:
        async with pool.lease(PoolSpec(), owner):
            await trio.sleep(1)

    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(use)
    assert len(exchange.lines) == 1


async def test_an_idle_one_is_closed_when_its_time_is_over(
    autojump_clock: MockClock, owner: DynamicSupervisor, exchange: PoolExchange
) -> None:
    pool = ConnectionPool(exchange.connect)
    async with pool.lease(PoolSpec(), owner):
        await trio.sleep(1000)
    await trio.sleep(299)
    async with pool.lease(PoolSpec(), owner):
        pass
    await trio.sleep(299)
    assert exchange.open() == [0]
    await trio.sleep(2)
    assert exchange.open() == []
    assert pool.connection_states() == []


async def test_a_connection_whose_time_is_over_is_not_leased_again(
    autojump_clock: MockClock, owner: DynamicSupervisor, exchange: PoolExchange
) -> None:
    pool = ConnectionPool(exchange.connect, idle_for=10)
    async with pool.lease(PoolSpec(), owner):
        pass
    # At exactly the idle deadline, in each scheduler turn of that moment.
    await trio.sleep(10)
    for _ in range(12):
        async with pool.lease(PoolSpec(), owner) as lease:
            for _ in range(6):
                await trio.lowlevel.checkpoint()
            assert not exchange.lines[lease.connection.number].is_closed
        await trio.sleep(10)


async def test_of_the_idle_ones_five_are_kept_and_the_least_recently_used_goes(
    autojump_clock: MockClock, owner: DynamicSupervisor, exchange: PoolExchange
) -> None:
    pool = ConnectionPool(exchange.connect)

    async def use(key: int) -> None:
        async with pool.lease(PoolSpec(key), owner):
            await trio.sleep(1)

    async with trio.open_nursery() as nursery:
        for key in range(8):  # the number of busy connections is not limited
            nursery.start_soon(use, key)
            await settle()
        assert len(exchange.open()) == 8
    await settle()
    assert exchange.open() == [3, 4, 5, 6, 7]
    await use(3)
    await use(100)
    await settle()
    assert exchange.open() == [3, 5, 6, 7, 8]


async def test_a_retired_connection_is_closed_at_once_if_it_is_idle(
    autojump_clock: MockClock, owner: DynamicSupervisor, exchange: PoolExchange
) -> None:
    pool = ConnectionPool(exchange.connect)
    for key in "ab":
        async with pool.lease(PoolSpec(key), owner):
            pass
    pool.retire("a")
    await settle()
    assert exchange.open() == [1]
    pool.retire("a")
    pool.retire("c")
    assert pool.connection_states() == [ConnectionState.IDLE]


async def test_a_retired_connection_in_use_is_closed_when_it_is_given_back(
    autojump_clock: MockClock, owner: DynamicSupervisor, exchange: PoolExchange
) -> None:
    pool = ConnectionPool(exchange.connect)
    async with pool.lease(PoolSpec(), owner):
        pool.retire("a")
        await settle()
        assert exchange.open() == [0]
        async with pool.lease(PoolSpec(), owner) as another:
            assert another.connection.number == 1
    await settle()
    assert exchange.open() == [1]


async def test_a_connection_that_ends_by_itself_is_leased_no_more(
    autojump_clock: MockClock, owner: DynamicSupervisor, exchange: PoolExchange
) -> None:
    pool = ConnectionPool(exchange.connect)
    async with pool.lease(PoolSpec(), owner) as lease:
        lease.connection.hung_up.set()
        await settle()
        async with pool.lease(PoolSpec(), owner) as other:
            assert other.connection.number == 1
    assert exchange.open() == [1]


async def test_a_lease_left_by_an_exception_closes_its_connection(
    autojump_clock: MockClock, owner: DynamicSupervisor, exchange: PoolExchange
) -> None:
    pool = ConnectionPool(exchange.connect)
    with pytest.raises(ValueError, match="in between"):
        async with pool.lease(PoolSpec(), owner):
            raise ValueError("in between")
    with trio.move_on_after(1):
        async with pool.lease(PoolSpec(), owner):
            await trio.sleep_forever()
    await settle()
    assert exchange.open() == []


async def test_one_deaf_conversation_does_not_cost_its_neighbours(
    autojump_clock: MockClock, owner: DynamicSupervisor, exchange: PoolExchange
) -> None:
    pool = ConnectionPool(exchange.connect, max_leases=3)
    async with pool.lease(PoolSpec(), owner) as neighbour:
        async with pool.lease(PoolSpec(), owner) as deaf:
            deaf.abandon()
        await trio.sleep(500)
        assert not neighbour.connection.is_closed
        async with pool.lease(PoolSpec(), owner) as newcomer:
            assert newcomer.connection is not neighbour.connection
    await settle()
    assert exchange.open() == [1]


async def test_an_abandoned_connection_is_closed_at_a_deadline_at_the_latest(
    autojump_clock: MockClock, owner: DynamicSupervisor, exchange: PoolExchange
) -> None:
    pool = ConnectionPool(exchange.connect, max_leases=2, abandoned_for=60)
    async with pool.lease(PoolSpec(), owner) as neighbour:
        async with pool.lease(PoolSpec(), owner) as deaf:
            deaf.abandon()
        await trio.sleep(59)
        assert not neighbour.connection.is_closed
        await trio.sleep(2)
        assert neighbour.connection.is_closed


async def test_what_cannot_be_connected_says_why_to_everybody_who_waits(
    autojump_clock: MockClock, owner: DynamicSupervisor, exchange: PoolExchange
) -> None:
    exchange.slow, exchange.broken = 1.0, True
    pool = ConnectionPool(exchange.connect, max_leases=2)
    refused: list[str] = []

    async def use() -> None:
        try:
            async with pool.lease(PoolSpec(), owner):
                raise AssertionError("it is connected")
        except ConnectionError as error:
            refused.append(str(error))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(use)
        nursery.start_soon(use)
    assert refused == ["connection refused"] * 2
    assert pool.connection_states() == []


async def test_who_is_cancelled_while_it_connects_leaves_nothing(
    autojump_clock: MockClock, owner: DynamicSupervisor, exchange: PoolExchange
) -> None:
    exchange.slow = 5.0
    pool = ConnectionPool(exchange.connect)
    with trio.move_on_after(1) as scope:
        async with pool.lease(PoolSpec(), owner):
            raise AssertionError("it is connected")
    assert scope.cancelled_caught
    await trio.sleep(10)
    assert (exchange.lines, pool.connection_states()) == ([], [])


async def test_all_are_closed_with_their_owner(
    autojump_clock: MockClock, exchange: PoolExchange
) -> None:
    pool = ConnectionPool(exchange.connect)
    async with DynamicSupervisor() as owner:
        for key in range(3):
            async with pool.lease(PoolSpec(key), owner):
                pass
        assert len(exchange.open()) == 3
    assert (exchange.open(), pool.connection_states()) == ([], [])


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 2),  # key
            st.integers(0, 400),  # begins
            st.integers(0, 400),  # lasts
            st.sampled_from(["well", "abandons", "raises", "is cancelled", "hangs up"]),
        ),
        max_size=25,
    ),
    st.integers(1, 3),
)
def test_whatever_happens_no_lease_and_no_connection_is_left(
    uses: list[tuple[int, int, int, str]], max_leases: int
) -> None:
    exchange = PoolExchange()
    pool = ConnectionPool(exchange.connect, max_leases=max_leases, max_idle=2)
    now_used: dict[int, int] = {}

    async def use(owner: DynamicSupervisor, key: int, begin: int, last: int, how: str) -> None:
        await trio.sleep(begin)
        try:
            with trio.CancelScope() as scope:
                async with pool.lease(PoolSpec(key), owner) as lease:
                    line = lease.connection
                    assert not line.is_closed
                    now_used[line.number] = now_used.get(line.number, 0) + 1
                    assert now_used[line.number] <= max_leases
                    try:
                        await trio.sleep(last)
                        await end(how, lease.connection, scope)
                        if how == "abandons":
                            lease.abandon()
                    finally:
                        now_used[line.number] -= 1
        except ValueError:
            pass

    async def end(how: str, line: PoolLine, scope: trio.CancelScope) -> None:
        await trio.lowlevel.checkpoint()
        if how == "raises":
            raise ValueError
        if how == "is cancelled":
            scope.cancel()
            await trio.sleep_forever()
        if how == "hangs up":
            line.hung_up.set()

    async def main() -> None:
        async with DynamicSupervisor() as owner:
            async with trio.open_nursery() as nursery:
                for each in uses:
                    nursery.start_soon(use, owner, *each)
            await settle()
            assert len(exchange.open()) <= 2
            assert ConnectionState.BUSY not in pool.connection_states()
            await trio.sleep(301)
            assert exchange.open() == []
            assert pool.connection_states() == []

    trio.run(main, clock=MockClock(autojump_threshold=0))


def test_two_commands_are_one_connection_if_nothing_that_matters_differs() -> None:
    def spec(cwd: str = "/a", account: str = "", *, any_directory: bool = False) -> Hashable:
        command = Command(argv=("x",), cwd=cwd, env={"A": "1"})
        return ConnectionSpec(
            launcher=NoLauncher(), command=command, account=account, any_directory=any_directory
        ).key

    assert spec() == spec()
    assert spec("/b") != spec()
    assert spec("/b", any_directory=True) == spec(any_directory=True)
    assert spec(account="other") != spec()
