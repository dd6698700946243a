"""The end of a portal ends everything in it, however it comes about."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from sessionmgr import (
    ManagerDown,
    NotInTrio,
    Portal,
    PortalClosed,
    PortalRun,
    open_manager,
    open_portal,
)
from sessionmgr.model import RunStatus
from sessionmgr.store import MemoryStore, NotAStore, StoreError
from sessionmgr.testing.scripted_provider import Hang, scripted
from tests.portal.actors import SHORTLY, lawful_portal, play, until_started


class Mishap(Exception):
    pass


def portal_threads() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "sessionmgr-portal"]


def test_leaving_the_block_ends_runs_and_the_thread() -> None:
    with lawful_portal() as portal:
        run = portal.start("actor", play(Hang()))
        until_started(run)
        assert len(portal_threads()) == 1
    assert run.status is RunStatus.CANCELLED
    assert portal_threads() == []


def test_an_exception_leaves_the_block_as_it_is_and_ends_everything() -> None:
    runs: list[PortalRun] = []

    def fail() -> None:
        with lawful_portal() as portal:
            runs.append(portal.start("actor", play(Hang())))
            raise Mishap

    with pytest.raises(Mishap):
        fail()
    assert runs[0].status is RunStatus.CANCELLED
    assert portal_threads() == []


def test_calls_that_wait_in_other_threads_raise() -> None:
    errors: list[BaseException] = []

    def use(call: Callable[[], object]) -> None:
        try:
            call()
        except PortalClosed as error:
            errors.append(error)

    with lawful_portal() as portal:
        run = portal.start("actor", play(Hang()))
        asked = threading.Event()

        async def hang(manager: object) -> None:
            asked.set()
            await trio.sleep_forever()

        calls: list[Callable[[], object]] = [
            run.result,
            lambda: list(run),
            lambda: portal.ask("actor", play(Hang())),
            lambda: portal.call(hang),
        ]
        threads = [threading.Thread(target=use, args=(call,)) for call in calls]
        for thread in threads:
            thread.start()
        assert asked.wait(SHORTLY)
    for thread in threads:
        thread.join()
    assert len(errors) == len(calls)
    assert all("portal" in str(error) for error in errors)


def test_pending_futures_fail() -> None:
    with lawful_portal() as portal:
        run = portal.start("actor", play(Hang()))
        futures = [portal.submit("actor", play(Hang())), run.future]
    for future in futures:
        assert isinstance(future.exception(SHORTLY), PortalClosed)


USES: list[Callable[[Portal, PortalRun], object]] = [
    lambda portal, run: portal.ask("actor", "x"),
    lambda portal, run: portal.start("actor", "x"),
    lambda portal, run: portal.submit("actor", "x"),
    lambda portal, run: portal.submit_start("actor", "x"),
    lambda portal, run: portal.call(lambda manager: manager.sessions()),
    lambda portal, run: portal.submit_call(lambda manager: manager.sessions()),
    lambda portal, run: portal.run_batch([]).__enter__(),
    lambda portal, run: run.result(),
    lambda portal, run: run.future,
    lambda portal, run: list(run),
    lambda portal, run: run.append("x"),
    lambda portal, run: run.next_event(),
]


@pytest.mark.parametrize("use", USES)
def test_after_its_end_a_portal_refuses_every_call(
    use: Callable[[Portal, PortalRun], object],
) -> None:
    with lawful_portal() as portal:
        run = portal.start("actor", "x")
    with pytest.raises(PortalClosed, match=r"is closed.*with open_portal"):
        use(portal, run)
    run.cancel()  # nothing is left to cancel
    portal.close()


def test_several_threads_may_close_a_portal() -> None:
    with lawful_portal() as portal:
        portal.start("actor", play(Hang()))
        threads = [threading.Thread(target=portal.close) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert portal_threads() == []


def test_a_portal_that_does_not_come_up_raises_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "runs.db").write_text("a letter\n" * 1000, encoding="utf-8")
    with pytest.raises(NotAStore):
        open_portal(store=tmp_path / "runs.db")
    with pytest.raises(StoreError):
        open_portal(store=tmp_path / "no" / "such" / "directory" / "runs.db")
    assert portal_threads() == []


class RequestlessStore(MemoryStore):
    """A store that raises, once it is broken, where the manager waits for requests."""

    def __init__(self) -> None:
        super().__init__()
        self.broken = trio.Event()

    async def wait_request(self, *, after: int = 0) -> int:
        await self.broken.wait()
        raise OSError("no requests any more")

    async def break_down(self, manager: object) -> None:
        self.broken.set()
        await trio.sleep_forever()


def give_up(last_words: Callable[[], None]) -> None:
    """Crash the manager of a portal repeatedly in its block, which then does `last_words`."""
    store = RequestlessStore()
    with open_portal(store=store, adapters={"actor": scripted("actor")}) as portal:
        portal.start("actor", play(Hang()))
        with pytest.raises(PortalClosed) as raised:
            portal.call(store.break_down)
        assert isinstance(raised.value.__cause__, ManagerDown)
        last_words()


def say_nothing() -> None:
    pass


def raise_mishap() -> None:
    raise Mishap


def test_a_manager_that_gives_up_ends_the_calls_and_the_block_with_its_reason() -> None:
    with pytest.raises(ManagerDown, match="gave up"):
        give_up(say_nothing)
    assert portal_threads() == []


def test_an_error_of_the_block_is_not_replaced_by_one_of_the_manager() -> None:
    with pytest.raises(Mishap):
        give_up(raise_mishap)
    assert portal_threads() == []


def test_a_manager_outside_trio_names_the_portal() -> None:
    with pytest.raises(NotInTrio, match=r"open_portal\(\).* from asyncio"):
        open_manager().__aenter__().send(None)
