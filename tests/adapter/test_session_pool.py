"""A pool with one process for each session, in virtual time."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import msgspec
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from sessionmgr.adapter.kit.session_pool import SessionPool
from sessionmgr.otp import DynamicSupervisor


class SessionSpec(msgspec.Struct, frozen=True):
    key: str = "session"


class FakeSessionProcess:
    """Process that serves its session until the pool ends it."""

    def __init__(self, spec: SessionSpec) -> None:
        self.spec = spec
        self.gone = trio.Event()

    def fits(self, spec: SessionSpec) -> bool:
        return spec.key == self.spec.key

    async def wait_closed(self) -> None:
        await trio.sleep_forever()


class FakeProcesses:
    """Starts processes, and records them."""

    def __init__(self) -> None:
        self.started: list[FakeSessionProcess] = []

    @asynccontextmanager
    async def start(self, spec: SessionSpec) -> AsyncGenerator[FakeSessionProcess, None]:
        await trio.lowlevel.checkpoint()
        self.started.append(FakeSessionProcess(spec))
        yield self.started[-1]


@pytest.fixture
async def owner() -> AsyncGenerator[DynamicSupervisor, None]:
    async with DynamicSupervisor(name="connections") as supervisor:
        yield supervisor


async def test_a_kept_process_is_ended_at_once(
    autojump_clock: MockClock, owner: DynamicSupervisor
) -> None:
    processes = FakeProcesses()
    pool = SessionPool(processes.start)
    async with pool.lease(SessionSpec(), owner):
        pass
    with trio.fail_after(1):
        await pool.end("session")
    assert [each.gone.is_set() for each in processes.started] == [True]


async def test_a_leased_process_is_ended_when_it_is_returned_and_no_other_is_started(
    autojump_clock: MockClock, owner: DynamicSupervisor
) -> None:
    processes = FakeProcesses()
    pool = SessionPool(processes.start)
    async with trio.open_nursery() as nursery:
        async with pool.lease(SessionSpec(), owner):
            nursery.start_soon(pool.end, "session")
            await wait_all_tasks_blocked()
            assert not processes.started[0].gone.is_set()
        with trio.fail_after(1):
            await processes.started[0].gone.wait()
    assert len(processes.started) == 1
    async with pool.lease(SessionSpec(), owner) as lease:
        assert lease.connection is processes.started[1]


async def test_the_end_of_a_session_without_a_process_is_at_once(autojump_clock: MockClock) -> None:
    with trio.fail_after(1):
        await SessionPool(FakeProcesses().start).end("session")
