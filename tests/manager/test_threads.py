"""A manager is for the tasks of its own `trio.run`; other callers get an error."""

from collections.abc import Awaitable, Callable

import pytest
import trio

from sessionmgr import Manager, NotInTrio, RunHandle, SessionHandle
from sessionmgr.testing.scripted_provider import Hang
from tests.manager.harness import ManagerHarness, open_harness, run_scripted

Uses = Callable[[Manager, SessionHandle, RunHandle], Awaitable[object]]


async def _iterate(run: RunHandle) -> None:
    async for _ in run:
        pass


async def _start(session: SessionHandle) -> None:
    async with session.start("x"):
        pass


ASYNC: dict[str, Uses] = {
    "open_session": lambda manager, session, run: manager.open_session("actor"),
    "session": lambda manager, session, run: manager.session(session.id),
    "negotiate": lambda manager, session, run: manager.negotiate("actor"),
    "cancel": lambda manager, session, run: manager.cancel(run.id),
    "cancel_all": lambda manager, session, run: manager.cancel_all(),
    "resume": lambda manager, session, run: manager.resume("snp_1"),
    "result": lambda manager, session, run: manager.result(run.id),
    "sessions": lambda manager, session, run: manager.sessions(),
    "settled": lambda manager, session, run: manager.settled(session.id),
    "blob": lambda manager, session, run: manager.blob("00"),
    "costs": lambda manager, session, run: manager.costs([run.id]),
    "health": lambda manager, session, run: manager.health(),
    "submit": lambda manager, session, run: session.submit("x"),
    "start": lambda manager, session, run: _start(session),
    "cancel session": lambda manager, session, run: session.cancel(),
    "close": lambda manager, session, run: session.close(),
    "append": lambda manager, session, run: run.append("x"),
    "pause": lambda manager, session, run: run.pause(),
    "wait": lambda manager, session, run: run.result(),
    "iterate": lambda manager, session, run: _iterate(run),
}
SYNC: dict[str, Callable[[Manager, SessionHandle, RunHandle], object]] = {
    "status": lambda manager, session, run: manager.status(),
    "subscribe": lambda manager, session, run: manager.subscribe(session.id),
    "events": lambda manager, session, run: manager.events(run.id),
    "cancel": lambda manager, session, run: run.cancel(),
}


async def held(house: ManagerHarness) -> tuple[Manager, SessionHandle, RunHandle]:
    session = await house.manager.open_session("actor")
    run = await session.submit(run_scripted(Hang()))
    async for event in run:
        if event.type == "run_started":
            break
    return house.manager, session, run


@pytest.mark.parametrize("what", ASYNC)
async def test_a_task_of_another_trio_run_is_refused(what: str) -> None:
    async with open_harness() as house:
        manager, session, run = await held(house)

        async def use() -> None:
            await ASYNC[what](manager, session, run)

        def elsewhere() -> None:
            trio.run(use)

        with pytest.raises(NotInTrio, match=r"trio\.from_thread"):
            await trio.to_thread.run_sync(elsewhere)
        assert run.status == "running"
        run.cancel()


@pytest.mark.parametrize("what", SYNC)
async def test_a_thread_is_refused_unless_it_goes_through_the_token(what: str) -> None:
    async with open_harness() as house:
        manager, session, run = await held(house)
        with pytest.raises(NotInTrio):
            await trio.to_thread.run_sync(SYNC[what], manager, session, run)
        assert run.status == "running"

        def by_token() -> object:
            return trio.from_thread.run_sync(
                SYNC[what], manager, session, run, trio_token=manager.token
            )

        assert await trio.to_thread.run_sync(by_token)
        run.cancel()
