"""SQLite store: its connections, its transactions, and the notification of commits.

Two rules hold. Data is durable before it is visible: a task is notified only after the commit, so
no reader sees an event that a crash could undo. And a waiting task subscribes before it reads, so
no commit can fall between its look and its wait.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Final,
    Literal,
    ParamSpec,
    TypeAlias,
    TypeVar,
    cast,
)

import outcome
import trio

from sessionmgr.store.append_checks import is_lease_held
from sessionmgr.store.change_notifier import ChangeNotifier
from sessionmgr.store.errors import LeaseHeld, StoreClosed, StoreFailed, StoreUnusable
from sessionmgr.store.rows import (
    Append,
    AppendResult,
    Lease,
    LeaseOwner,
    PruneResult,
    RemovalResult,
    Request,
    append_result,
)
from sessionmgr.store.sqlite import blobs, journal, leases as lease_rows, queries, retention
from sessionmgr.store.sqlite.change_poll import ChangeDetector, ChangePoller
from sessionmgr.store.sqlite.connection import Durability, SqliteOptions
from sessionmgr.store.sqlite.executor import (
    DatabaseJob,
    InlineExecutor,
    ReadWorker,
    ThreadExecutor,
    WriteWorker,
)
from sessionmgr.store.sqlite.write_quota import WriteQuota

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
    from sqlite3 import Connection
    from types import CoroutineType

    from sessionmgr.store.change_notifier import ChangeKey

P = ParamSpec("P")
T = TypeVar("T")

Executor: TypeAlias = Literal["thread", "inline"]
"""Where SQL runs: in threads of its own, or inline in the calling task, for virtual time."""

READERS: Final = 2
PENDING_ROWS: Final = 16_384
PENDING_BYTES: Final = 64 * 1024 * 1024
"""Maximum number of bytes that wait to be written; further writes wait."""
GRACE: Final = 5.0
"""Seconds that closing waits for the disk."""


def _size(appends: Sequence[Append]) -> int:
    bodies = [len(row.body) for append in appends for row in append.rows]
    records = [len(run.body) for append in appends for run in append.runs]
    return sum(bodies) + sum(records) + sum([len(blob) for each in appends for blob in each.blobs])


def _notify(append: Append) -> tuple[ChangeKey, int]:
    return ("session", append.session_id), append.first + len(append.rows) - 1


def _no_notification(jobs: Sequence[DatabaseJob]) -> None:
    """Do nothing: a read changes nothing that a task could wait for."""


def reads(
    query: Callable[Concatenate[Connection, P], T],
) -> Callable[Concatenate[SqliteStore, P], CoroutineType[Any, Any, T]]:
    """Return a method that runs a query; it takes the query's parameters except the connection."""

    async def method(self: SqliteStore, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.read(lambda connection: query(connection, *args, **kwargs))

    method.__doc__ = query.__doc__
    return method  # type: ignore[return-value]  # what it returns is one


def writes(
    change: Callable[Concatenate[Connection, P], T],
) -> Callable[Concatenate[SqliteStore, P], CoroutineType[Any, Any, T]]:
    """Return a method that runs a write; it takes the parameters except the connection."""

    async def method(self: SqliteStore, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.write(lambda connection: change(connection, *args, **kwargs))

    method.__doc__ = change.__doc__
    return method  # type: ignore[return-value]  # what it returns is one


class SqliteStore:
    """Store in a file; `open_sqlite_store` opens it. One connection writes, the others read."""

    def __init__(self, options: SqliteOptions, executor: Executor, poll: float | None) -> None:
        self._options = options
        self._notifier = ChangeNotifier()
        self._quota = WriteQuota(PENDING_ROWS, PENDING_BYTES)
        self._detector = ChangeDetector()
        self._poller = ChangePoller(self._notifier, self._find_changes, poll)
        self._closed = False
        self.commits = 0
        """Number of transactions that were written, or refused by the disk."""
        self._group_writer = journal.GroupWriter()
        writer = WriteWorker(options, self._group_writer.clear_cache)
        readers = [ReadWorker(options) for _ in range(READERS)]
        self._writing: InlineExecutor | ThreadExecutor
        self._reading: InlineExecutor | ThreadExecutor
        if executor == "thread":
            self._writing = ThreadExecutor("sessionmgr-writer", [writer], self._notify_committed)
            self._reading = ThreadExecutor("sessionmgr-reader", readers, _no_notification)
        else:
            self._writing = InlineExecutor(writer, self._notify_committed)
            self._reading = InlineExecutor(readers[0], _no_notification)

    @property
    def path(self) -> Path:
        """Path of the file."""
        return self._options.path

    @property
    def pending(self) -> tuple[int, int, int]:
        """Rows and bytes that are not written yet, and the number of tasks that wait for room."""
        return self._quota.rows, self._quota.size, self._quota.waiting

    async def start(self) -> None:
        """Open or create the file."""
        await self._writing.start()
        await self._reading.start()

    async def aclose(self) -> None:
        """Finish all writes and close; the wait for a disk that hangs is bounded."""
        self._closed = True
        with trio.move_on_after(GRACE, shield=True):
            await self._reading.close()
            await self._writing.close()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed(str(self.path))

    async def write(
        self,
        work: Callable[[Connection], T],
        *,
        rows: int = 1,
        size: int = 0,
        notifications: Iterable[tuple[ChangeKey, int]] = (),
    ) -> T:
        """Run a write, in one transaction with other waiting writes."""
        self._check_open()
        await self._quota.acquire(rows, size)
        if self._closed:
            self._quota.release(rows, size)
            self._check_open()
        return cast("T", await self._writing.do(DatabaseJob(work, rows, size, notifications)))

    def _notify_committed(self, jobs: Sequence[DatabaseJob]) -> None:
        """Notify the tasks that wait for these commits, after the commit."""
        self.commits += 1
        for job in jobs:
            self._quota.release(job.rows, job.size)
            if self._notifier and isinstance(job.outcome, outcome.Value):
                for key, number in job.notifications:
                    self._notifier.notify(key, number)

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Run a read, on one state of the file."""
        self._check_open()
        return cast("T", await self._reading.do(DatabaseJob(work)))

    async def _find_changes(
        self, awaited: Mapping[ChangeKey, int]
    ) -> Sequence[tuple[ChangeKey, int]]:
        # A job wakes a thread, which costs more than its work.
        if self._group_writer.saw_no_other_commits():
            await trio.lowlevel.checkpoint_if_cancelled()
            return ()
        detector = self._detector
        try:
            return await self.read(lambda connection: detector.find_changes(connection, awaited))
        except BaseException:  # its result, present or future, reaches no task
            self._detector = ChangeDetector()
            self._group_writer.mark_unseen_commits()
            raise

    async def _wait(self, key: ChangeKey, after: int, read: Callable[[Connection], int]) -> int:
        """Wait until `key` exceeds `after`; `read` returns the present number."""
        # Subscribe first: a commit during the read must notify this task.
        with self._notifier.subscribe(key, after) as waiter:
            waiter.advance(await self.read(read))
            return await self._poller.wait(waiter)

    # --- the journal -------------------------------------------------------------------------

    create_session = writes(journal.create_session)
    session = reads(queries.session)
    sessions = reads(queries.sessions)
    run = reads(queries.run)
    runs = reads(queries.runs)
    resolve = reads(queries.resolve)
    events = reads(queries.events)

    async def append(self, append: Append) -> AppendResult:
        """Store a batch, or refuse it before anything has changed."""
        (outcome,) = await self.append_all([append])
        return append_result(outcome)

    async def append_all(self, appends: Sequence[Append]) -> Sequence[AppendResult | Exception]:
        """Store batches in one transaction; if one of them cannot be stored, each by itself."""
        if len(appends) > 1:
            try:
                return await self._append_all(appends)
            except StoreFailed:
                pass  # one may be too large, for example
            except (StoreClosed, StoreUnusable):
                raise
            except Exception:  # noqa: BLE001  # its own outcome says which one is refused
                pass
        return [await self._outcome(append) for append in appends]

    async def _outcome(self, append: Append) -> AppendResult | Exception:
        try:
            return (await self._append_all([append]))[0]
        except Exception as error:  # noqa: BLE001  # the outcome of this one
            return error

    async def _append_all(self, appends: Sequence[Append]) -> list[AppendResult]:
        return await self.write(
            lambda connection: self._group_writer.append_all(connection, appends),
            rows=sum([len(append.rows) for append in appends]) or 1,
            size=_size(appends),
            notifications=map(_notify, appends),
        )

    async def wait(self, session_id: str, *, after: int) -> int:
        """Wait until the session has an event above `after`."""
        return await self._wait(
            ("session", session_id),
            after,
            lambda connection: queries.find_session(connection, session_id)[1],
        )

    async def prune(self, *, before: int, session_id: str | None = None) -> PruneResult:
        """Drop streamed deltas of runs that ended before then, some at a time."""
        return await retention.prune(self.write, before, session_id)

    async def remove(self, *, before: int, session_id: str | None = None) -> RemovalResult:
        """Remove sessions all of whose runs ended before then, one at a time."""
        return await retention.remove(self.write, before, session_id)

    # --- blobs, snapshots, back-offs, metadata -----------------------------------------------

    blob = reads(blobs.blob)
    snapshot = reads(blobs.snapshot)
    snapshots = reads(blobs.snapshots)
    put_backoff = writes(blobs.put_backoff)
    backoffs = reads(blobs.backoffs)
    put_meta = writes(blobs.put_meta)
    meta = reads(blobs.meta)
    costs = reads(blobs.costs)

    # --- leases ------------------------------------------------------------------------------

    async def acquire(
        self,
        name: str,
        owner: LeaseOwner,
        *,
        now: int,
        ttl: int,
        gone: Callable[[LeaseOwner], bool] = lambda _: False,
        alive: Callable[[LeaseOwner], bool] = lambda _: False,
    ) -> Lease:
        """Acquire the lease, with a higher fence than any before."""
        # This checks outside the transaction whether the holder is gone or alive; the transaction
        # replaces the lease only if it is still the one that was checked (and not renewed).
        lease = await self._acquire(name, owner, now, ttl)
        while lease.owner != owner:
            if is_lease_held(lease, now, gone, alive):
                raise LeaseHeld(name, lease.owner, lease.fence, lease.expires)
            lease = await self._acquire(name, owner, now, ttl, lease)
        return lease

    _acquire = writes(lease_rows.acquire)
    renew = writes(lease_rows.renew)
    release = writes(lease_rows.release)
    leases = reads(lease_rows.leases)

    # --- requests ----------------------------------------------------------------------------

    async def submit(self, request: Request) -> int:
        """Store a request, unless the same one is stored; return its number."""
        number = await self.write(lambda connection: lease_rows.submit(connection, request))
        self._notifier.notify(("requests", ""), number)
        return number

    requests = reads(lease_rows.requests)

    async def wait_request(self, *, after: int) -> int:
        """Wait until there is a request with a number above `after`."""
        return await self._wait(("requests", ""), after, lease_rows.last_request)

    async def claim_request(
        self,
        request_id: str,
        owner: LeaseOwner,
        *,
        gone: Callable[[LeaseOwner], bool] = lambda _: False,
    ) -> bool:
        """Assign a free request to this owner alone; return whether the owner now has it."""
        over: LeaseOwner | None = None
        while True:
            taker = await self.write(
                partial(lease_rows.claim_request, request_id=request_id, owner=owner, over=over)
            )
            if taker == owner:
                return True
            if taker is None or taker == over or not gone(taker):
                return False
            over = taker

    async def complete(self, request_id: str, result: bytes) -> None:
        """Record the request's outcome, if it has none yet."""
        await self.write(
            lambda connection: lease_rows.complete(connection, request_id, result),
            size=len(result),
            notifications=[(("result", request_id), 1)],
        )

    async def wait_result(self, request_id: str) -> bytes:
        """Wait until the request is completed; return its result."""
        await self._wait(
            ("result", request_id),
            0,
            lambda connection: lease_rows.request(connection, request_id).result is not None,
        )
        found = await self.read(lambda connection: lease_rows.request(connection, request_id))
        assert found.result is not None
        return found.result


@asynccontextmanager
async def open_sqlite_store(
    path: str | os.PathLike[str],
    *,
    durability: Durability = "process",
    executor: Executor = "thread",
    patience: float = 30.0,
    poll: float | None = 0.1,
    max_bytes: int | None = None,
) -> AsyncGenerator[SqliteStore]:
    """Open the store in this file for a block; create the file if it does not exist.

    Args:
        path: Path of the file, on a local disk.
        durability: "process" makes commits survive the end of this process; "power" flushes each
            commit to the disk, so that it survives a power failure too.
        patience: Seconds to wait for another process's lock.
        poll: Seconds between looks for other processes' changes while tasks wait for them; None if
            no other process uses the file.
        max_bytes: Maximum size of the file.
        executor: "inline" runs all work in the calling task: for virtual time, which does not wait
            for threads.

    Raises:
        StoreUnusable: The file cannot be used; the class and the message name the reason. Nothing
            was overwritten.
    """
    options = SqliteOptions(
        path=Path(path), durability=durability, patience=patience, max_bytes=max_bytes
    )
    store = SqliteStore(options, executor, poll)
    try:
        await store.start()
        yield store
    finally:
        await store.aclose()
