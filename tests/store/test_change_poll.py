"""Other processes' changes are polled while a task waits, by one task for all."""

import sqlite3
import threading
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import count, takewhile
from pathlib import Path

import pytest
import trio
import trio.testing

from sessionmgr.store import NewSession, Request, open_sqlite_store
from sessionmgr.store.change_notifier import ChangeKey, ChangeNotifier
from sessionmgr.store.sqlite.change_poll import ChangeDetector, ChangePoller
from sessionmgr.store.sqlite.connection import SqliteOptions, open_writer
from sessionmgr.store.sqlite.journal import GroupWriter, create_session
from sessionmgr.store.sqlite.store import READERS
from sessionmgr.testing.store_conformance.sample_records import SESSION, batch

KEY: ChangeKey = ("session", "a")
OTHER: ChangeKey = ("session", "b")


class SharedFile:
    """File in which other processes write, and the tasks that wait for it."""

    def __init__(self, interval: float | None = 1.0) -> None:
        self.notifier = ChangeNotifier()
        self.written: dict[ChangeKey, int] = {}
        self.looks: list[float] = []
        self.woken: list[tuple[str, float]] = []
        self.fails = False
        self.poller = ChangePoller(self.notifier, self.look, interval)

    async def look(self, awaited: Mapping[ChangeKey, int]) -> Sequence[tuple[ChangeKey, int]]:
        await trio.lowlevel.checkpoint()
        self.looks.append(trio.current_time())
        if self.fails:
            self.fails = False
            raise OSError
        return [(key, self.written[key]) for key in awaited if key in self.written]

    async def wait(self, name: str, key: ChangeKey = KEY, after: int = 0) -> None:
        with self.notifier.subscribe(key, after) as waiter:
            await self.poller.wait(waiter)
        self.woken.append((name, trio.current_time()))


async def test_there_is_no_polling_while_no_task_waits(
    autojump_clock: trio.testing.MockClock,
) -> None:
    world = SharedFile()
    await trio.sleep(100)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.wait, "a")
        await trio.testing.wait_all_tasks_blocked()
        world.notifier.notify(KEY, 1)
    await trio.sleep(100)
    assert world.looks == []


async def test_one_looks_for_all(
    autojump_clock: trio.testing.MockClock,
) -> None:
    world = SharedFile()
    begin = trio.current_time()
    async with trio.open_nursery() as nursery:
        for n in range(50):
            nursery.start_soon(world.wait, str(n))
        await trio.sleep(2.5)
        world.written[KEY] = 1
    assert [each - begin for each in world.looks] == pytest.approx([1, 2, 3])
    assert {when - begin for _, when in world.woken} == {3}
    assert len(world.woken) == 50


async def test_who_waits_for_something_else_sleeps_on(
    autojump_clock: trio.testing.MockClock,
) -> None:
    world = SharedFile()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.wait, "a")
        nursery.start_soon(world.wait, "b", OTHER)
        nursery.start_soon(world.wait, "later", KEY, 1)
        world.written[KEY] = 1
        await trio.sleep(5.5)
        assert [name for name, _ in world.woken] == ["a"]
        world.written[KEY] = world.written[OTHER] = 2
    assert len(world.looks) == 6


async def test_when_the_polling_task_leaves_another_continues(
    autojump_clock: trio.testing.MockClock,
) -> None:
    world = SharedFile()
    scopes = [trio.CancelScope() for _ in range(5)]

    async def wait(scope: trio.CancelScope) -> None:
        with scope:
            await world.wait("x")

    async with trio.open_nursery() as nursery:
        for scope in scopes:
            nursery.start_soon(wait, scope)
        for scope in scopes[:4]:
            await trio.sleep(10)
            scope.cancel()
        await trio.sleep(10)
        before = len(world.looks)
        assert before >= 40
        world.written[KEY] = 1
    assert len(world.woken) == 1
    assert len(world.looks) == before + 1


async def test_all_leave_at_once(
    autojump_clock: trio.testing.MockClock,
) -> None:
    world = SharedFile()
    async with trio.open_nursery() as nursery:
        for n in range(20):
            nursery.start_soon(world.wait, str(n))
        await trio.sleep(1.5)
        nursery.cancel_scope.cancel()
    assert len(world.notifier) == 0
    await trio.sleep(50)
    assert len(world.looks) == 1


async def test_a_look_that_fails_fails_for_one_and_the_others_wait_on(
    autojump_clock: trio.testing.MockClock,
) -> None:
    world = SharedFile()
    world.fails = True
    failed: list[str] = []

    async def wait(name: str) -> None:
        try:
            await world.wait(name)
        except OSError:
            failed.append(name)

    async with trio.open_nursery() as nursery:
        for n in range(3):
            nursery.start_soon(wait, str(n))
        await trio.sleep(1.5)
        world.written[KEY] = 1
    assert len(failed) == 1
    assert len(world.woken) == 2


async def test_without_an_interval_only_our_own_writing_wakes(
    autojump_clock: trio.testing.MockClock,
) -> None:
    world = SharedFile(interval=None)
    world.written[KEY] = 1
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(world.wait, "a"))
        await trio.sleep(1000)
        assert world.woken == []
        world.notifier.notify(KEY, 1)
    assert world.looks == []


async def test_who_begins_to_wait_is_looked_for_though_the_file_is_as_it_was(
    tmp_path: Path,
) -> None:
    path = tmp_path / "x.db"
    async with open_sqlite_store(path) as store:
        await store.submit(Request(request_id="req_1", kind="cancel", target="run_1", at=0))
        await store.complete("req_1", b"done")
    done: tuple[ChangeKey, int] = (("result", "req_1"), 1)
    glance = ChangeDetector()
    with closing(sqlite3.connect(path)) as connection:
        assert done not in glance.find_changes(connection, {})
        assert done in glance.find_changes(connection, {done[0]: 0})
        assert glance.find_changes(connection, {done[0]: 0}) == []
        assert glance.find_changes(connection, {}) == []
        last = (("requests", ""), 1)
        assert last in glance.find_changes(connection, {last[0]: 5})
        assert glance.find_changes(connection, {last[0]: 5}) == []
        assert last in glance.find_changes(connection, {last[0]: 0})


def test_a_group_reports_whether_others_have_written_since_the_last(tmp_path: Path) -> None:
    options, group, numbers = SqliteOptions(path=tmp_path / "s.db"), GroupWriter(), count(1)

    def append(connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        group.append_all(connection, [batch(next(numbers), "message_received")])
        connection.execute("COMMIT")

    with closing(open_writer(options)) as ours, closing(open_writer(options)) as other:
        create_session(ours, NewSession(session_id=SESSION, provider="echo", at=1, body=b"{}"))
        append(ours)
        assert not group.saw_no_other_commits()  # another process may have written before
        assert not group.saw_no_other_commits()  # there was no group since
        append(ours)
        append(ours)
        assert group.saw_no_other_commits()
        create_session(other, NewSession(session_id="other", provider="echo", at=1, body=b"{}"))
        append(ours)
        append(ours)
        assert not group.saw_no_other_commits()  # though the last group saw nothing new
        append(ours)
        assert group.saw_no_other_commits()


async def test_others_are_noticed_while_we_write_ourselves(
    tmp_path: Path,
) -> None:
    path = tmp_path / "s.db"
    async with open_sqlite_store(path, poll=0.01) as store, open_sqlite_store(path) as other:
        await store.create_session(
            NewSession(session_id=SESSION, provider="echo", at=1, body=b"{}")
        )
        await store.create_session(
            NewSession(session_id="other", provider="echo", at=1, body=b"{}")
        )
        heard = trio.Event()

        async def wait() -> None:
            await store.wait("other", after=0)
            heard.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            with trio.fail_after(30):
                await trio.lowlevel.checkpoint()
                for first in takewhile(lambda _: not heard.is_set(), count(1)):
                    await store.append(batch(first, "message_received"))
                    if first == 100:
                        await other.append(batch(1, "message_received", session_id="other"))


async def test_a_look_that_is_cancelled_is_made_up_for(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    is_held, is_looking, goes_on = threading.Event(), threading.Event(), threading.Event()

    def hold_up() -> int:
        if is_held.is_set():
            is_looking.set()
            goes_on.wait(30)
        return 0

    async with open_sqlite_store(path, poll=None) as store, open_sqlite_store(path) as other:
        for each in (SESSION, "other"):
            await store.create_session(
                NewSession(session_id=each, provider="echo", at=1, body=b"{}")
            )
        both = threading.Barrier(READERS)

        def prepare(connection: sqlite3.Connection) -> None:
            both.wait(30)
            connection.set_progress_handler(hold_up, 1)

        async with trio.open_nursery() as nursery:
            for _ in range(READERS):
                nursery.start_soon(store.read, prepare)
        await store.append(batch(1, "message_received"))
        await other.append(batch(1, "message_received", session_id="other"))
        await store.append(batch(2, "message_received"))  # which sees that others have written
        look = store._find_changes  # pyright: ignore[reportPrivateUsage]
        async with trio.open_nursery() as nursery:
            is_held.set()
            nursery.start_soon(look, dict[ChangeKey, int]())
            await trio.to_thread.run_sync(is_looking.wait)
            nursery.cancel_scope.cancel()
        is_held.clear()
        goes_on.set()
        await store.append(batch(3, "message_received"))  # which sees nothing new
        assert (("session", "other"), 1) in await look({("session", "other"): 0})
