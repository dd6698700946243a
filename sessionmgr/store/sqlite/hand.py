"""Those who work on a connection: the one that writes, and those that read."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Final

import outcome

from sessionmgr.store.sqlite.connection import Options, open_reader, open_writer
from sessionmgr.store.sqlite.fault import FATAL, code_of, fault

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sessionmgr.store.sqlite.lane import Job

GROUP_ROWS: Final = 4096
"""So many rows are committed together at most."""


class Writer:
    """Commits jobs in groups: one transaction for all that is there.

    A job that is refused leaves the others of its group alone: then all of them are done once more,
    each behind a savepoint of its own. When the disk refuses, all of them fail, and none is half
    done.
    """

    def __init__(self, options: Options, rolled_back: Callable[[], None] = lambda: None) -> None:
        self.options = options
        self.rows = GROUP_ROWS
        self._rolled_back = rolled_back
        """Hears that what was written is not stored."""
        self._connection: sqlite3.Connection | None = None
        self._dirty = False

    @property
    def connection(self) -> sqlite3.Connection:
        """The connection, once it is open."""
        assert self._connection is not None
        return self._connection

    def open(self) -> None:
        """Open the file, or make it."""
        self._connection = open_writer(self.options)

    def work(self, jobs: Sequence[Job]) -> None:
        """Commit what the jobs do."""
        wanted = [job for job in jobs if not job.abandoned]
        committed = outcome.capture(self._commit, wanted)
        self._dirty = True
        if isinstance(committed, outcome.Error):
            self._rolled_back()
            if self.connection.in_transaction:
                outcome.capture(self.connection.execute, "ROLLBACK")
            for job in wanted:
                job.outcome = _error(self.options, committed.error)

    def _commit(self, jobs: Sequence[Job]) -> None:
        # Refusals are rare, and savepoints are a third of all statements otherwise.
        execute = self.connection.execute
        execute("BEGIN IMMEDIATE")
        if all(self._does(job) for job in jobs):
            execute("COMMIT")
            return
        execute("ROLLBACK")
        self._rolled_back()
        if len(jobs) == 1:
            return
        execute("BEGIN IMMEDIATE")
        for job in jobs:
            execute("SAVEPOINT job")
            if not self._does(job):
                execute("ROLLBACK TO job")
                self._rolled_back()
            execute("RELEASE job")
        execute("COMMIT")

    def _does(self, job: Job) -> bool:
        """Do a job; False if it was refused."""
        job.outcome = outcome.capture(job.work, self.connection)
        if isinstance(job.outcome, outcome.Value):
            return True
        error = job.outcome.error
        if isinstance(error, sqlite3.Error) and code_of(error) in FATAL:
            raise error
        job.outcome = _error(self.options, error)
        return False

    def rest(self) -> bool:
        """Move what was written from the log into the file, so that no commit has to."""
        if self._dirty:
            self._dirty = False
            outcome.capture(self.connection.execute, "PRAGMA wal_checkpoint(PASSIVE)")
        return False

    def close(self) -> None:
        """Move the log into the file, if nobody else is at it, and let go of it."""
        outcome.capture(self.connection.execute, "PRAGMA busy_timeout=100")
        outcome.capture(self.connection.execute, "PRAGMA wal_checkpoint(TRUNCATE)")
        self.connection.close()


class Reader:
    """Does one job after the other, each on one state of the file."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.rows = 1
        self._connection: sqlite3.Connection | None = None

    @property
    def connection(self) -> sqlite3.Connection:
        """The connection, once it is open."""
        assert self._connection is not None
        return self._connection

    def open(self) -> None:
        """Open the file."""
        self._connection = open_reader(self.options)

    def work(self, jobs: Sequence[Job]) -> None:
        """Read what the jobs want."""
        for job in jobs:
            if not job.abandoned:
                job.outcome = outcome.capture(self._read, job)
                if isinstance(job.outcome, outcome.Error):
                    job.outcome = _error(self.options, job.outcome.error)
            if self.connection.in_transaction:
                outcome.capture(self.connection.execute, "ROLLBACK")

    def _read(self, job: Job) -> object:
        self.connection.execute("BEGIN")
        return job.work(self.connection)

    def rest(self) -> bool:
        """Rest indeed."""
        return False

    def close(self) -> None:
        """Let go of the file."""
        self.connection.close()


def _error(options: Options, error: BaseException) -> outcome.Error:
    if isinstance(error, sqlite3.Error):
        said = fault(options.path, error)
        said.__cause__ = error
        return outcome.Error(said)
    return outcome.Error(error)
