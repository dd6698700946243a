"""The SQLite store writes in groups, within limits, and never in the way of a cancel."""

import sqlite3
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import pytest
import trio
import trio.testing
from msgspec.structs import replace

from sessionmgr.store import (
    Append,
    EventRow,
    NewSession,
    NumberGap,
    SqliteStore,
    StoreBusy,
    StoreError,
    open_sqlite_store,
)
from sessionmgr.store.sqlite import store as sqlite_store
from sessionmgr.store.sqlite.blobs import put_blob
from sessionmgr.store.sqlite.connection import SqliteOptions
from sessionmgr.store.sqlite.executor import DatabaseJob, ThreadExecutor, WriteWorker
from sessionmgr.store.sqlite.journal import append_one, create_session
from sessionmgr.testing.store_conformance.sample_records import (
    SESSION,
    batch,
    new_session,
    numbers,
    request,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.db"


@contextmanager
def held(path: Path) -> Generator[sqlite3.Connection]:
    """Block all writes, as a disk that hangs does."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        try:
            yield other
        finally:
            if other.in_transaction:
                other.execute("ROLLBACK")


async def stalled(store: SqliteStore) -> None:
    """Wait until every task is parked, though a thread still works."""
    assert store.path.exists()
    await trio.testing.wait_all_tasks_blocked(0.05)


async def test_an_append_that_hangs_is_cancelled_at_once(path: Path) -> None:
    async with open_sqlite_store(path) as store:
        await new_session(store)
        with held(path):
            begin = trio.current_time()
            with trio.move_on_after(0.05) as scope:
                await store.append(batch(1, "a"))
            assert scope.cancelled_caught
            assert trio.current_time() - begin < 25  # the store itself has a patience of 30
            assert numbers(await store.events(SESSION)) == []
        await store.append(batch(1, "a"))  # stored by now or not: the same batch again is safe
        assert numbers(await store.events(SESSION)) == [1]


async def test_a_cancelled_append_that_waits_behind_a_hung_one_is_withdrawn(path: Path) -> None:
    hung = trio.Event()
    thaw = threading.Event()
    token = trio.lowlevel.current_trio_token()

    def hang(_: sqlite3.Connection) -> None:
        token.run_sync_soon(hung.set)
        assert thaw.wait(30)

    done: list[str] = []
    executor = ThreadExecutor("writer", [WriteWorker(SqliteOptions(path=path))], lambda _: None)
    await executor.start()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(executor.do, DatabaseJob(hang))
        await hung.wait()
        with trio.move_on_after(0.01) as scope:
            await executor.do(DatabaseJob(lambda _: done.append("withdrawn")))
        assert scope.cancelled_caught
        thaw.set()
    await executor.do(DatabaseJob(lambda _: done.append("last")))
    await executor.close()
    assert done == ["last"]


async def test_a_store_on_a_hung_disk_is_left_in_bounds(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_store, "GRACE", 0.1)
    async with open_sqlite_store(path) as store, trio.open_nursery() as nursery:
        await new_session(store)
        with held(path):
            nursery.start_soon(partial(store.put_meta, "late", b""))
            await stalled(store)
            with trio.fail_after(20):
                await store.aclose()
            nursery.cancel_scope.cancel()


async def test_a_store_for_which_there_is_no_room_for_threads_is_left_at_once(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    begin = trio.current_time()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="new thread"):
            async with open_sqlite_store(path):
                pytest.fail("it is open")
    assert trio.current_time() - begin < sqlite_store.GRACE / 2


async def test_closing_stores_what_was_handed_over(path: Path) -> None:
    async with open_sqlite_store(path) as store, trio.open_nursery() as nursery:
        for n in range(30):
            await new_session(store, f"ses_{n}")
        with held(path) as other:
            for n in range(30):
                nursery.start_soon(partial(store.append, batch(1, "a", session_id=f"ses_{n}")))
            await stalled(store)
            other.execute("ROLLBACK")
        await store.aclose()
    async with open_sqlite_store(path) as store:
        assert [(await store.session(f"ses_{n}")).last_seq for n in range(30)] == [1] * 30


async def test_the_log_is_moved_into_the_file_at_the_end(path: Path) -> None:
    async with open_sqlite_store(path) as store:
        await new_session(store)
        await store.append(batch(1, *"abc"))
    assert [each.name for each in path.parent.iterdir()] == ["s.db"]


async def test_the_log_is_moved_into_the_file_when_nothing_else_is_to_be_done(path: Path) -> None:
    rested = trio.Event()

    class Resting(WriteWorker):
        def run_idle_work(self) -> bool:
            more = super().run_idle_work()
            if path.stat().st_size > 50_000:  # idle work may run before there is any
                trio.from_thread.run_sync(rested.set, trio_token=token)
            return more

    token = trio.lowlevel.current_trio_token()
    executor = ThreadExecutor("writer", [Resting(SqliteOptions(path=path))], lambda _: None)
    await executor.start()
    await executor.do(DatabaseJob(lambda connection: put_blob(connection, "key", bytes(50_000))))
    with trio.fail_after(60):
        await rested.wait()
    await executor.close()


async def test_power_durability_flushes_each_commit(path: Path) -> None:
    for durability, level in (("power", 2), ("process", 1)):
        writer = WriteWorker(
            SqliteOptions(path=path, durability="power" if level == 2 else "process")
        )
        writer.open()
        (found,) = writer.connection.execute("PRAGMA synchronous").fetchone()
        writer.close()
        assert found == level, durability


# --- groups --------------------------------------------------------------------------------------


@pytest.fixture
def writer(path: Path) -> Iterator[WriteWorker]:
    writer = WriteWorker(SqliteOptions(path=path))
    writer.open()
    new = NewSession(session_id=SESSION, provider="p", at=1, body=b"")
    writer.run_jobs([DatabaseJob(lambda connection: create_session(connection, new))])
    yield writer
    writer.close()


def job(append: Append) -> DatabaseJob:
    return DatabaseJob(lambda connection: append_one(connection, append), rows=len(append.rows))


def result(job: DatabaseJob) -> object:
    assert job.outcome is not None
    return job.outcome.unwrap()


def last_seq(writer: WriteWorker) -> int:
    (last,) = writer.connection.execute("SELECT last FROM sessions").fetchone()
    (count,) = writer.connection.execute("SELECT count(*) FROM events").fetchone()
    assert count == last
    return int(last)


def test_a_group_is_one_transaction(writer: WriteWorker) -> None:
    commits: list[str] = []
    writer.connection.set_trace_callback(commits.append)
    writer.run_jobs([job(batch(n, "a")) for n in range(1, 101)])
    writer.connection.set_trace_callback(None)
    assert sum(each.startswith("COMMIT") for each in commits) == 1
    assert last_seq(writer) == 100


def test_a_refused_job_leaves_its_group_alone(writer: WriteWorker) -> None:
    jobs = [job(batch(1, "a")), job(batch(9, "a")), job(batch(2, "a"))]
    writer.run_jobs(jobs)
    outcomes = [type(each.outcome).__name__ for each in jobs]
    assert outcomes == ["Value", "Error", "Value"]
    with pytest.raises(NumberGap):
        result(jobs[1])
    assert last_seq(writer) == 2


def test_a_job_that_fails_halfway_leaves_nothing_behind(writer: WriteWorker) -> None:
    def half(connection: sqlite3.Connection) -> None:
        append_one(connection, batch(1, "a"))
        raise ZeroDivisionError

    wrong = EventRow(2, None, "a", "no bytes")  # type: ignore[arg-type]
    too_big = batch(2, "a", at=1 << 70)
    jobs = [
        DatabaseJob(half),
        job(batch(1, "a")),
        DatabaseJob(lambda connection: connection.execute("SELECT nothing")),
        job(replace(too_big, rows=(wrong,), fence=1 << 70)),
        job(batch(2, "a")),
    ]
    writer.run_jobs(jobs)
    assert [type(each.outcome).__name__ for each in jobs] == [
        "Error",
        "Value",
        "Error",
        "Error",
        "Value",
    ]
    assert last_seq(writer) == 2


async def test_a_bug_in_a_worker_is_raised_in_the_waiting_tasks(path: Path) -> None:
    class Mistaken(WriteWorker):
        def run_jobs(self, jobs: Sequence[DatabaseJob]) -> None:
            raise ZeroDivisionError

    executor = ThreadExecutor("writer", [Mistaken(SqliteOptions(path=path))], lambda _: None)
    await executor.start()
    for _ in range(2):
        with trio.fail_after(60), pytest.raises(ZeroDivisionError):
            await executor.do(DatabaseJob(lambda _: None))
    await executor.close()


def test_an_abandoned_job_is_not_done(writer: WriteWorker) -> None:
    jobs = [job(batch(1, "a")), job(batch(2, "b"))]
    jobs[1].abandoned = True
    writer.run_jobs(jobs)
    assert jobs[1].outcome is None
    assert last_seq(writer) == 1


def test_when_the_disk_refuses_the_whole_group_fails_and_the_next_one_does_not(
    path: Path,
) -> None:
    writer = WriteWorker(SqliteOptions(path=path, patience=0.05))
    writer.open()
    with held(path):
        jobs = [job(batch(n, "a")) for n in range(1, 4)]
        writer.run_jobs(jobs)
    for each in jobs:
        with pytest.raises(StoreBusy):
            result(each)
    errors = {id(each.outcome) for each in jobs}
    assert len(errors) == 3
    again = DatabaseJob(
        lambda connection: connection.execute("INSERT INTO meta VALUES ('a', x'00')")
    )
    writer.run_jobs([again])
    assert type(again.outcome).__name__ == "Value"
    writer.close()


async def test_appends_of_many_tasks_share_commits(path: Path) -> None:
    ids = [f"ses_{n}" for n in range(64)]
    async with open_sqlite_store(path) as store:
        for each in ids:
            await new_session(store, each)
        with held(path) as other:
            async with trio.open_nursery() as nursery:
                for each in ids:
                    nursery.start_soon(partial(store.append, batch(1, "a", session_id=each)))
                await stalled(store)
                # The first of them hangs in BEGIN; the others wait behind it.
                assert store.pending[0] == 64
                commits = store.commits
                other.execute("ROLLBACK")
        assert store.commits - commits <= 2
        with closing(sqlite3.connect(path)) as reader:
            assert reader.execute("SELECT count(*) FROM events").fetchone() == (64,)


# --- room ----------------------------------------------------------------------------------------


async def test_who_finds_no_room_waits_for_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_store, "PENDING_ROWS", 10)
    done: list[int] = []

    async def write(store: SqliteStore, n: int) -> None:
        await store.append(batch(1, *"abcd", session_id=f"ses_{n}"))
        done.append(n)

    async with open_sqlite_store(path) as store:
        for n in range(8):
            await new_session(store, f"ses_{n}")
        with held(path) as other:
            async with trio.open_nursery() as nursery:
                for n in range(8):
                    nursery.start_soon(write, store, n)
                await stalled(store)
                assert store.pending == (8, 4 * 2 * len(batch(1, "a").rows[0].body), 6)
                assert done == []
                other.execute("ROLLBACK")
        assert sorted(done) == list(range(8))
        assert store.pending == (0, 0, 0)


async def test_waiting_for_room_can_be_cancelled_and_lets_others_by(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_store, "PENDING_BYTES", 1000)

    async def put(store: SqliteStore, scope: trio.CancelScope, n: int, size: int) -> None:
        with scope:
            rows = (EventRow(1, None, "a", bytes(size)),)
            await store.append(replace(batch(1, "a", session_id=f"ses_{n}"), rows=rows))

    async with open_sqlite_store(path) as store:
        for n in range(3):
            await new_session(store, f"ses_{n}")
        scopes = [trio.CancelScope() for _ in range(3)]
        with held(path) as other:
            async with trio.open_nursery() as nursery:
                for n, size in enumerate((900, 5000, 50)):
                    nursery.start_soon(put, store, scopes[n], n, size)
                    await stalled(store)
                assert store.pending == (1, 900, 2)
                scopes[1].cancel()
                await stalled(store)
                assert store.pending == (2, 950, 0)
                other.execute("ROLLBACK")
        stored = [(await store.session(f"ses_{n}")).last_seq for n in range(3)]
        assert stored == [1, 0, 1]


async def test_what_is_larger_than_all_room_goes_in_alone(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_store, "PENDING_BYTES", 10)
    monkeypatch.setattr(sqlite_store, "PENDING_ROWS", 2)
    async with open_sqlite_store(path) as store:
        await new_session(store)
        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                for n in range(5):
                    new = NewSession(session_id=f"ses_{n}", provider="p", at=1, body=b"{}")
                    large = batch(1, "a", session_id=new.session_id)
                    large = replace(large, new_session=new, blobs=(bytes([n]) * 1000,))
                    nursery.start_soon(store.append, large)
            await store.append(batch(1, *"abcdef"))
        assert store.pending == (0, 0, 0)


# --- durable before visible ----------------------------------------------------------------------


async def test_uncommitted_data_is_invisible_and_notifies_no_task(path: Path) -> None:
    woken: list[int] = []

    async def wait(store: SqliteStore) -> None:
        woken.append(await store.wait(SESSION, after=0))
        with closing(sqlite3.connect(path)) as reader:  # as any other process sees it
            assert reader.execute("SELECT count(*) FROM events").fetchone() == (2,)

    async with open_sqlite_store(path, poll=0.2) as store:
        await new_session(store)
        with held(path) as other, trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(wait, store)
                nursery.start_soon(partial(store.append, batch(1, "a", "b")))
                await stalled(store)
                assert numbers(await store.events(SESSION)) == []
                assert woken == []
                other.execute("ROLLBACK")
    assert woken == [2]


async def test_a_failed_group_wakes_no_task(path: Path) -> None:
    async with open_sqlite_store(path, patience=0.05) as store:
        await new_session(store)
        with trio.move_on_after(10) as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(lambda: store.wait(SESSION, after=0))
                nursery.start_soon(lambda: store.wait_request(after=0))
                with held(path):
                    with pytest.raises(StoreError):
                        await store.append(batch(1, "a"))
                    with pytest.raises(StoreError):
                        await store.submit(request(1))
                await stalled(store)
                assert len(nursery.child_tasks) == 2
                scope.cancel()
