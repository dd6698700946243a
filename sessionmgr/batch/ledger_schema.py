"""The tables of a ledger, and how its file is opened."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Final

from sessionmgr.batch.standing import TABLE
from sessionmgr.errors import LedgerUnusable
from sessionmgr.process.private_path import make_private_file

if TYPE_CHECKING:
    from pathlib import Path

VERSION: Final = 1
APPLICATION: Final = 0x736D6274  # "smbt"
PATIENCE: Final = 5.0

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


def open_ledger_file(path: Path | None) -> sqlite3.Connection:
    """Open the file, or with none a nameless one that goes with the process.

    Raises:
        LedgerUnusable: It is not ours, from a newer version, damaged, or cannot be written.
    """
    # The nameless kind lives on disk as soon as it grows: `:memory:` would stay in memory.
    where = "" if path is None else str(path)
    try:
        if path is not None:  # it holds what the jobs say, variables of theirs included
            make_private_file(path)
        connection = sqlite3.connect(where, timeout=PATIENCE, isolation_level=None)
    except (sqlite3.Error, OSError) as error:
        raise LedgerUnusable(where, error) from error
    try:
        _prepare(connection, where)
    except sqlite3.Error as error:
        connection.close()
        raise LedgerUnusable(where, error) from error
    except LedgerUnusable:
        connection.close()
        raise
    return connection


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
            f"begin; {_TABLES} pragma user_version = {VERSION};"
            f" pragma application_id = {APPLICATION}; commit;"
        )
    elif application != APPLICATION:
        raise LedgerUnusable(where, "it belongs to something else")
    elif version != VERSION:
        raise LedgerUnusable(where, f"it is of version {version}, and this is {VERSION}")
    connection.execute(TABLE)  # which the first ledgers of this version did not have
