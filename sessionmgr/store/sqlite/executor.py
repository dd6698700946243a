"""Executors of database work: in a thread for each connection, or inline.

Work is passed as jobs, and a task that awaits one may be cancelled at any time: a disk that hangs
then blocks a thread, and no task. Inline, the same work runs in the caller's task: for virtual
time, in which one seed makes one schedule.
"""

from __future__ import annotations

import queue
import sqlite3
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeAlias

import outcome
import trio
from trio.lowlevel import (
    Abort,
    Task,
    TrioToken,
    cancel_shielded_checkpoint,
    checkpoint_if_cancelled,
    current_task,
    current_trio_token,
    reschedule,
    wait_task_rescheduled,
)

from sessionmgr.store.sqlite.connection import SqliteOptions, open_reader, open_writer
from sessionmgr.store.sqlite.error_translation import FATAL, error_code, translate_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    Done: TypeAlias = Callable[[Sequence["DatabaseJob"]], None]

IDLE: Final = 0.2
"""Seconds without a job after which idle work runs."""
GROUP_ROWS: Final = 4096
"""Maximum number of rows that are committed together."""


class DatabaseJob:
    """Job: some work on a connection, its size, and the task that waits for it."""

    __slots__ = ("abandoned", "notifications", "outcome", "rows", "size", "task", "work")

    def __init__(
        self,
        work: Callable[[sqlite3.Connection], object],
        rows: int = 1,
        size: int = 0,
        notifications: Iterable[tuple[tuple[str, str], int]] = (),
    ) -> None:
        self.work = work
        self.rows = rows
        self.size = size
        self.notifications = notifications
        """Notifications of waiters that are due once the work is done."""
        self.task: Task | None = None
        self.outcome: outcome.Outcome[object] | None = None
        self.abandoned = False


# --- workers, which own the connections ----------------------------------------------------------


class ConnectionWorker:
    """Owner of one connection. All but `rows` runs in the executor's thread."""

    rows: int = 1
    """Maximum number of rows of jobs that run together."""

    def __init__(self, options: SqliteOptions) -> None:
        self.options: Final = options
        self._connection: sqlite3.Connection | None = None

    @property
    def connection(self) -> sqlite3.Connection:
        """The connection, once it is open."""
        assert self._connection is not None
        return self._connection

    def open(self) -> None:
        """Open the file."""
        raise NotImplementedError

    def run_jobs(self, jobs: Sequence[DatabaseJob]) -> None:
        """Run the jobs and set their outcomes; an exception raised here is the outcome of all."""
        raise NotImplementedError

    def run_idle_work(self) -> bool:
        """Do some work that can wait; return whether more of it is left."""
        return False

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()

    def error(self, error: BaseException) -> outcome.Error:
        """Return the outcome of a job that raised this error."""
        if isinstance(error, sqlite3.Error):
            translated = translate_error(self.options.path, error)
            translated.__cause__ = error
            return outcome.Error(translated)
        return outcome.Error(error)

    def roll_back(self) -> None:
        """End a transaction that was left open."""
        if self.connection.in_transaction:
            outcome.capture(self.connection.execute, "ROLLBACK")


class WriteWorker(ConnectionWorker):
    """Worker that commits jobs in groups: one transaction for all waiting jobs.

    A refused job does not affect the others of its group: all of them are run once more, each
    within a savepoint of its own. If the disk refuses, all of them fail, and none is partly stored.
    """

    rows = GROUP_ROWS

    def __init__(
        self, options: SqliteOptions, rolled_back: Callable[[], None] = lambda: None
    ) -> None:
        super().__init__(options)
        self._rolled_back: Final = rolled_back
        """Called when written data was not committed."""
        self._dirty = False

    def open(self) -> None:
        """Open or create the file."""
        self._connection = open_writer(self.options)

    def run_jobs(self, jobs: Sequence[DatabaseJob]) -> None:
        """Run the jobs and commit."""
        wanted = [job for job in jobs if not job.abandoned]
        committed = outcome.capture(self._commit, wanted)
        self._dirty = True
        if isinstance(committed, outcome.Error):
            self._rolled_back()
            self.roll_back()
            for job in wanted:
                job.outcome = self.error(committed.error)

    def _commit(self, jobs: Sequence[DatabaseJob]) -> None:
        # Refusals are rare, and otherwise savepoints would be a third of all statements.
        execute = self.connection.execute
        execute("BEGIN IMMEDIATE")
        if all(self._run_job(job) for job in jobs):
            execute("COMMIT")
            return
        execute("ROLLBACK")
        self._rolled_back()
        if len(jobs) == 1:
            return
        execute("BEGIN IMMEDIATE")
        for job in jobs:
            execute("SAVEPOINT job")
            if not self._run_job(job):
                execute("ROLLBACK TO job")
                self._rolled_back()
            execute("RELEASE job")
        execute("COMMIT")

    def _run_job(self, job: DatabaseJob) -> bool:
        """Run a job; return False if it was refused."""
        job.outcome = outcome.capture(job.work, self.connection)
        if isinstance(job.outcome, outcome.Value):
            return True
        error = job.outcome.error
        if isinstance(error, sqlite3.Error) and error_code(error) in FATAL:
            raise error
        job.outcome = self.error(error)
        return False

    def run_idle_work(self) -> bool:
        """Checkpoint the log into the file, so that no commit has to."""
        if self._dirty:
            self._dirty = False
            outcome.capture(self.connection.execute, "PRAGMA wal_checkpoint(PASSIVE)")
        return False

    def close(self) -> None:
        """Checkpoint the log, if no other process uses the file, and close the connection."""
        outcome.capture(self.connection.execute, "PRAGMA busy_timeout=100")
        outcome.capture(self.connection.execute, "PRAGMA wal_checkpoint(TRUNCATE)")
        super().close()


class ReadWorker(ConnectionWorker):
    """Worker that runs one job after the other, each on one state of the file."""

    def open(self) -> None:
        """Open the file."""
        self._connection = open_reader(self.options)

    def run_jobs(self, jobs: Sequence[DatabaseJob]) -> None:
        """Run the jobs."""
        for job in jobs:
            if not job.abandoned:
                job.outcome = outcome.capture(self._read, job)
                if isinstance(job.outcome, outcome.Error):
                    job.outcome = self.error(job.outcome.error)
            self.roll_back()

    def _read(self, job: DatabaseJob) -> object:
        self.connection.execute("BEGIN")
        return job.work(self.connection)


def _work(worker: ConnectionWorker, jobs: Sequence[DatabaseJob]) -> None:
    worked = outcome.capture(worker.run_jobs, jobs)
    if isinstance(worked, outcome.Error):  # a bug: the waiting tasks must not wait forever
        for job in jobs:
            job.outcome = outcome.Error(worked.error)


# --- the executors -------------------------------------------------------------------------------


class InlineExecutor:
    """Executor that runs each job at once, in the calling task."""

    def __init__(self, worker: ConnectionWorker, done: Done) -> None:
        self._worker: Final = worker
        self._done: Final = done
        self._is_open = False

    async def start(self) -> None:
        """Open the connections."""
        await checkpoint_if_cancelled()
        self._worker.open()
        self._is_open = True

    async def do(self, job: DatabaseJob) -> object:
        """Run the job."""
        _work(self._worker, [job])
        self._done([job])
        await cancel_shielded_checkpoint()  # a caller must learn that its data is stored
        assert job.outcome is not None
        return job.outcome.unwrap()

    async def close(self) -> None:
        """Close the connections."""
        if self._is_open:
            self._worker.close()
        await cancel_shielded_checkpoint()


class ThreadExecutor:
    """Executor with one thread for each worker; jobs run in the order of their submission.

    Threads and tasks share no lock. Only trio's thread sets `task` and resumes tasks; only a
    worker's thread sets `outcome`, before it posts the job back. A cancelled task sets `abandoned`
    and leaves: the thread skips the job, or its outcome is dropped if the work has begun.
    """

    def __init__(self, name: str, workers: Sequence[ConnectionWorker], done: Done) -> None:
        self._name: Final = name
        self._workers: Final = workers
        self._done: Final = done
        self._queue: Final[queue.SimpleQueue[DatabaseJob | None]] = queue.SimpleQueue()
        self._token: TrioToken | None = None
        self._running = 0
        self._ended: Final = trio.Event()

    async def start(self) -> None:
        """Start the threads, and open their connections."""
        self._token = current_trio_token()
        opening: list[DatabaseJob] = []
        for worker in self._workers:
            job = DatabaseJob(lambda _: None)
            opening.append(job)
            # A daemon thread: a disk that hangs must not keep the program from ending.
            target = threading.Thread(
                target=self._serve, args=(worker, job), name=self._name, daemon=True
            )
            target.start()
            self._running += 1
        for job in opening:
            if job.outcome is None:
                await self._sleep(job)
            else:
                job.outcome.unwrap()

    async def do(self, job: DatabaseJob) -> object:
        """Return what the job's work returns, or raise what it raises.

        If this is cancelled, the work may have been done, or may be done later.
        """
        self._queue.put(job)
        return await self._sleep(job)

    async def _sleep(self, job: DatabaseJob) -> object:
        def abort(_: object) -> Abort:
            job.task = None
            job.abandoned = True
            return Abort.SUCCEEDED

        job.task = current_task()
        return await wait_task_rescheduled(abort)

    async def close(self) -> None:
        """Finish all jobs, and wait until the threads have ended."""
        for _ in self._workers:
            self._queue.put(None)
        if self._running:
            await self._ended.wait()

    # --- in the thread ---------------------------------------------------------------------------

    def _serve(self, worker: ConnectionWorker, opening: DatabaseJob) -> None:
        opening.outcome = outcome.capture(worker.open)
        self._post_outcomes(self._wake, [opening])
        if isinstance(opening.outcome, outcome.Value):
            more_to_come = True
            while more_to_come:
                jobs, more_to_come = self._next_jobs(worker)
                if jobs:
                    _work(worker, jobs)
                    self._post_outcomes(self._answer, jobs)
            outcome.capture(worker.close)
        self._post_outcomes(self._end)

    def _next_jobs(self, worker: ConnectionWorker) -> tuple[list[DatabaseJob], bool]:
        """Wait for a job; return it with all jobs that are queued, and whether more will follow."""
        job = self._next(worker)
        jobs: list[DatabaseJob] = []
        rows = 0
        while job is not None:
            jobs.append(job)
            rows += job.rows
            if rows >= worker.rows:
                return jobs, True
            try:
                job = self._queue.get_nowait()
            except queue.Empty:
                return jobs, True
        return jobs, False

    def _next(self, worker: ConnectionWorker) -> DatabaseJob | None:
        more = True
        while more:
            try:
                return self._queue.get(timeout=IDLE)
            except queue.Empty:
                more = worker.run_idle_work()
        return self._queue.get()

    def _post_outcomes(self, sync: Callable[..., object], *args: object) -> None:
        assert self._token is not None
        with suppress(trio.RunFinishedError):  # no task waits any more
            self._token.run_sync_soon(sync, *args)

    # --- back in trio ----------------------------------------------------------------------------

    def _answer(self, jobs: Sequence[DatabaseJob]) -> None:
        self._done(jobs)
        self._wake(jobs)

    def _wake(self, jobs: Sequence[DatabaseJob]) -> None:
        for job in jobs:
            if job.task is not None:
                assert job.outcome is not None
                reschedule(job.task, job.outcome)
                job.task = None

    def _end(self) -> None:
        self._running -= 1
        if not self._running:
            self._ended.set()
