"""Tables of a ledger, and access to its file."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from sessionmgr.batch.errors import LedgerUnusable
from sessionmgr.batch.former_results import FORMER_TABLE, TABLE
from sessionmgr.process import make_private_file

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

T = TypeVar("T")

VERSION: Final = 1
APPLICATION: Final = 0x736D6274  # "smbt"
PATIENCE: Final = 0.25
"""Seconds that SQLite waits for a lock before `keep_waiting` decides whether to go on."""

_TABLES: Final = """
create table note (key text primary key, value text not null) without rowid;

create table job (
    id text primary key,
    line integer not null,
    round integer not null,
    chosen integer not null,
    provider text not null,
    directory text not null,
    fingerprint text not null,
    digests blob not null,
    body blob not null,
    state text not null,
    attempts integer not null default 0,
    resume integer not null default 0,
    ended integer,
    result blob
) without rowid;
create index next_job on job (provider, line) where state = 'waiting' and chosen;
create index unsettled_job on job (line) where state in ('running', 'retrying');
create unique index ended_job on job (ended) where ended is not null;
create index line_of_job on job (line);

create table attempt (
    job text not null,
    number integer not null,
    session text not null,
    run text,
    status text,
    failure text,
    provider_session text,
    usage blob,
    usd real,
    provenance text,
    primary key (job, number)
) without rowid;
"""


class LedgerFile:
    """The file of a ledger: one connection, used by one thread at a time."""

    def __init__(self, path: Path | None, keep_waiting: Callable[[], bool]) -> None:
        """Open the file; without a path, a temporary file that disappears with the process.

        `keep_waiting` is called whenever another process has locked the file for a moment.

        Raises:
            LedgerUnusable: It is foreign, from a newer version, damaged, or not writable.
        """
        self._where: Final = "" if path is None else str(path)
        self._keep_waiting: Final = keep_waiting
        try:
            if path is not None:  # the file contains the jobs with their environment variables
                make_private_file(path)
            # A temporary file spills to disk as it grows; `:memory:` would stay in memory.
            self._connection: Final = sqlite3.connect(
                self._where, timeout=PATIENCE, isolation_level=None, check_same_thread=False
            )
        except (sqlite3.Error, OSError) as error:
            raise LedgerUnusable(self._where, error) from error
        try:
            self._retry_while_locked(lambda: _prepare(self._connection, self._where))
        except LedgerUnusable:
            self._connection.close()
            raise

    def _retry_while_locked(self, work: Callable[[], T]) -> T:
        """Run work, and retry it while another process holds a lock."""
        while True:
            try:
                return work()
            except sqlite3.Error as error:
                is_locked = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
                if not (is_locked and self._keep_waiting()):
                    where = self._where or "the ledger"
                    raise LedgerUnusable(where, error) from error

    def _execute(self, statement: str, values: tuple[object, ...] = ()) -> sqlite3.Cursor:
        return self._retry_while_locked(lambda: self._connection.execute(statement, values))

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    @contextmanager
    def transaction(self) -> Generator[None, None, None]:
        """Write all changes of this block, or none."""
        self.begin_writing()
        try:
            yield
        except BaseException:
            self.roll_back()
            raise
        self.commit()

    def begin_writing(self) -> None:
        """Start a transaction."""
        self._execute("begin immediate")

    def commit(self) -> None:
        """Commit it."""
        self._execute("commit")

    def roll_back(self) -> None:
        """Roll it back."""
        if self._connection.in_transaction:  # a full disk has already ended the transaction
            self._execute("rollback")


def _prepare(connection: sqlite3.Connection, where: str) -> None:
    if where:
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = normal")
    else:
        connection.execute("pragma journal_mode = memory")
        connection.execute("pragma synchronous = off")
    (version,) = connection.execute("pragma user_version").fetchone()
    (application,) = connection.execute("pragma application_id").fetchone()
    if version == 0 and not connection.execute("select count(*) from sqlite_schema").fetchone()[0]:
        connection.executescript(
            f"begin immediate; {_TABLES} pragma user_version = {VERSION};"
            f" pragma application_id = {APPLICATION}; commit;"
        )
    elif application != APPLICATION:
        raise LedgerUnusable(where, "it is the database of another program")
    elif version != VERSION:
        raise LedgerUnusable(
            where, f"its format version is {version}, and this program supports {VERSION}"
        )
    # The first ledgers of this version do not have these tables.
    for table in (TABLE, FORMER_TABLE):
        connection.execute(table)
