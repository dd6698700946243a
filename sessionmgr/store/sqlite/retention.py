"""Retention: drops streamed deltas, removes sessions, and returns free pages to the disk.

All of it runs in steps, so that appends run in between. One transaction removes a session with all
its rows. Its images are removed if no remaining event names them. An image is stored a moment
before the event that names it, so this happens only while no lease is held.
"""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import asynccontextmanager, closing, suppress
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import trio
from msgspec import Struct

from sessionmgr.store.append_checks import DELTAS
from sessionmgr.store.errors import StoreError
from sessionmgr.store.image_references import IMAGE, image_blobs
from sessionmgr.store.rows import PruneResult, RemovalResult
from sessionmgr.store.sqlite.connection import CHECKPOINT_PAGES, SqliteOptions, connect
from sessionmgr.store.sqlite.error_translation import BUSY, error_code, translate_error

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Collection
    from pathlib import Path

T = TypeVar("T")

ROWS_AT_ONCE: Final = 2000
RUNS_AT_ONCE: Final = 50
"""Maximum number of rows, and of runs, that one step drops; appends run in between."""
PAGES_AT_ONCE: Final = 500
"""Pages that one step returns; appends run in between."""
SHORT_LOG: Final = 256
"""Log pages per checkpoint while the file shrinks: its disk may be full."""
ROOM_TO_REWRITE: Final = 3
"""Free space for rewriting a file, in multiples of the kept data: log, copy and file."""
PATIENCE: Final = 1.0
"""Seconds within which a file to be rewritten must become free."""
INCREMENTAL: Final = 2
_OLD: Final = """
    SELECT key, session_id FROM sessions WHERE key > ? AND created < ?
    AND (? IS NULL OR session_id = ?)
    AND NOT EXISTS (SELECT 1 FROM runs WHERE session = sessions.key
                    AND (ended IS NULL OR ended >= ?))
    AND NOT EXISTS (SELECT 1 FROM leases WHERE name = session_id AND expires IS NOT NULL)
    ORDER BY key LIMIT 1
"""


class WriteFunction(Protocol):
    """Function that runs work in a write transaction: the store's `write`."""

    def __call__(self, work: Callable[[sqlite3.Connection], T], *, rows: int = 1) -> Awaitable[T]:
        """Return what `work` returns, once it is committed."""
        ...


async def prune(write: WriteFunction, before: int, session_id: str | None) -> PruneResult:
    """Drop streamed deltas of runs that ended before then, some at a time."""
    events = size = 0
    runs: set[int] = set()
    drop = partial(prune_some, before=before, session_id=session_id)
    async with _limit_wal(write):
        while (some := await write(drop, rows=ROWS_AT_ONCE)) is not None:
            runs.update(some)
            events += sum(count for count, _ in some.values())
            size += sum(bytes_ for _, bytes_ in some.values())
        return PruneResult(events, len(runs), size, await _free_pages(write))


async def remove(write: WriteFunction, before: int, session_id: str | None) -> RemovalResult:
    """Remove sessions all of whose runs ended before then, one at a time."""
    sessions = events = size = last = 0
    blobs = set[str]()
    async with _limit_wal(write):
        while one := await write(
            partial(_remove_one, after=last, before=before, session_id=session_id),
            rows=ROWS_AT_ONCE,
        ):
            last, removed, named = one
            blobs |= named
            sessions, events = sessions + 1, events + removed.events
            size += removed.size
        if session_id is None:
            await write(partial(_remove_requests, before=before))
        images = RemovalResult()
        if blobs:
            images = await write(partial(_remove_blobs, named=blobs))
        freed = await _free_pages(write)
    return RemovalResult(sessions, events, images.blobs, size + images.size, freed)


@asynccontextmanager
async def _limit_wal(write: WriteFunction) -> AsyncGenerator[None]:
    """Keep the log as small as possible: the disk may be almost full."""
    await write(partial(_restore_wal, pages=SHORT_LOG))
    try:
        yield
    finally:
        # The wait is bounded by the time limit for locks; a closed file has no log any more.
        with trio.CancelScope(shield=True), suppress(StoreError):
            await write(partial(_restore_wal, pages=CHECKPOINT_PAGES))


async def _free_pages(write: WriteFunction) -> int:
    """Return free pages of the file to the disk in steps; the result is their size."""
    freed = 0
    while some := await write(_free_some_pages, rows=ROWS_AT_ONCE):
        freed += some
    return freed


def prune_some(
    connection: sqlite3.Connection, before: int, session_id: str | None
) -> dict[int, tuple[int, int]] | None:
    """Drop some deltas of ended runs; return how many and how large by run, or None: all is done.

    One run may take several steps.
    """
    runs = connection.execute(
        "SELECT key, session, pruned, last FROM runs"
        " WHERE ended IS NOT NULL AND pruned < last AND ended < ? AND"
        " (? IS NULL OR session = (SELECT key FROM sessions WHERE session_id = ?)) LIMIT ?",
        (before, session_id, session_id, RUNS_AT_ONCE),
    ).fetchall()
    dropped: dict[int, tuple[int, int]] = {}
    total = 0
    for key, session, pruned, last in runs:
        sizes = _prune_run(connection, key, session, pruned, last)
        if sizes:
            dropped[key] = len(sizes), sum(sizes)
        total += len(sizes)
        if total >= ROWS_AT_ONCE:
            break
    return dropped if runs else None


def _prune_run(
    connection: sqlite3.Connection, key: int, session: int, pruned: int, last: int
) -> list[int]:
    rows = connection.execute(
        "SELECT id, seq, type, length(body) FROM events WHERE session = ? AND seq > ? AND seq <= ?"
        " AND run = ? AND type IN (?, ?, ?) ORDER BY seq LIMIT ?",
        (session, pruned, last, key, *DELTAS, ROWS_AT_ONCE),
    ).fetchall()
    connection.executemany("DELETE FROM events WHERE id = ?", [(row[0],) for row in rows])
    holes: list[tuple[int, int, str]] = []
    for _, seq, kind, _ in rows:
        if holes and holes[-1][1] + 1 == seq and holes[-1][2] == kind:
            holes[-1] = (holes[-1][0], seq, kind)
        else:
            holes.append((seq, seq, kind))
    connection.executemany(
        "INSERT INTO holes (session, first, last, run, type) VALUES (?, ?, ?, ?, ?)",
        [(session, first, end, key, kind) for first, end, kind in holes],
    )
    looked_at = rows[-1][1] if len(rows) == ROWS_AT_ONCE else last
    connection.execute("UPDATE runs SET pruned = ? WHERE key = ?", (looked_at, key))
    return [row[3] for row in rows]


def _remove_one(
    connection: sqlite3.Connection, after: int, before: int, session_id: str | None
) -> tuple[int, RemovalResult, set[str]] | None:
    """Remove the next session above a key; return its key, the totals, and the images it named.

    The result is None if there is no further session.
    """
    found = connection.execute(_OLD, (after, before, session_id, session_id, before)).fetchone()
    if found is None:
        return None
    key, name = found
    images = connection.execute(
        "SELECT body FROM events WHERE session = ? AND type = ?", (key, IMAGE)
    )
    blobs = {sha for (body,) in images for sha in image_blobs(body)}
    events, size = connection.execute(
        "SELECT count(*), coalesce(sum(length(body)), 0) FROM events WHERE session = ?", (key,)
    ).fetchone()
    connection.execute(
        "DELETE FROM requests WHERE target = ?"
        " OR target IN (SELECT run_id FROM runs WHERE session = ?)",
        (name, key),
    )
    for table in ("events", "holes", "ledger", "runs"):
        connection.execute(f"DELETE FROM {table} WHERE session = ?", (key,))
    connection.execute("DELETE FROM snapshots WHERE session_id = ?", (name,))
    connection.execute("DELETE FROM leases WHERE name = ?", (name,))
    connection.execute("DELETE FROM sessions WHERE key = ?", (key,))
    return key, RemovalResult(sessions=1, events=events, size=size), blobs


def _remove_blobs(connection: sqlite3.Connection, named: Collection[str]) -> RemovalResult:
    """Remove those images that no event names, unless a lease is held."""
    if connection.execute("SELECT 1 FROM leases WHERE expires IS NOT NULL LIMIT 1").fetchone():
        return RemovalResult()
    left = set(named)
    for (body,) in connection.execute("SELECT body FROM events WHERE type = ?", (IMAGE,)):
        left -= image_blobs(body)
    removed = size = 0
    for sha in left:
        for (length,) in connection.execute(
            "SELECT length(body) FROM blobs WHERE sha256 = ?", (sha,)
        ).fetchall():
            removed, size = removed + 1, size + length
        connection.execute("DELETE FROM blobs WHERE sha256 = ?", (sha,))
    return RemovalResult(blobs=removed, size=size)


def _remove_requests(connection: sqlite3.Connection, before: int) -> None:
    """Remove requests older than that: no program waits for their results any more."""
    connection.execute("DELETE FROM requests WHERE at < ?", (before,))


def _restore_wal(connection: sqlite3.Connection, pages: int) -> None:
    """Restore the automatic checkpoint whenever the log has so many pages."""
    connection.execute(f"PRAGMA wal_autocheckpoint={pages}").close()


def _free_some_pages(connection: sqlite3.Connection) -> int:
    """Return some free pages to the disk; the result is their size in bytes."""
    before = _pages(connection)
    if _value(connection, "auto_vacuum") != INCREMENTAL or not _value(connection, "freelist_count"):
        return 0
    connection.execute(f"PRAGMA incremental_vacuum({PAGES_AT_ONCE})").fetchall()
    return (before - _pages(connection)) * _value(connection, "page_size")


class RewriteResult(Struct, frozen=True):
    """The result of rewriting a file."""

    freed: int = 0
    why_not: str | None = None
    """Why the file keeps its size although it has free pages."""


def rewrite_file(path: Path) -> RewriteResult:
    """Rewrite a file of an earlier version without its free pages.

    A file of a later version returns its free pages and needs no rewriting.

    Raises:
        StoreUnusable: The file is unusable.
    """
    try:
        with closing(connect(SqliteOptions(path=path, patience=PATIENCE))) as connection:
            return _rewrite(connection, path)
    except sqlite3.Error as error:
        if error_code(error) in BUSY:
            return RewriteResult(why_not="another program uses it")
        raise translate_error(path, error) from error


def _rewrite(connection: sqlite3.Connection, path: Path) -> RewriteResult:
    free, pages = _value(connection, "freelist_count"), _pages(connection)
    if _value(connection, "auto_vacuum") == INCREMENTAL or not free:
        return RewriteResult()
    if connection.execute("SELECT 1 FROM leases WHERE expires IS NOT NULL LIMIT 1").fetchone():
        return RewriteResult(why_not="another program uses it")
    page_size = _value(connection, "page_size")
    needed = ROOM_TO_REWRITE * (pages - free) * page_size
    if shutil.disk_usage(path.parent).free < needed:
        megabytes = needed / 1_000_000
        return RewriteResult(why_not=f"rewriting it needs {megabytes:.0f} MB of free disk space")
    connection.execute("PRAGMA auto_vacuum=INCREMENTAL").close()
    connection.execute("VACUUM").close()
    with suppress(sqlite3.Error):  # otherwise the last connection does it at its close
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").close()
    return RewriteResult((pages - _pages(connection)) * page_size)


def _pages(connection: sqlite3.Connection) -> int:
    return _value(connection, "page_count")


def _value(connection: sqlite3.Connection, pragma: str) -> int:
    with closing(connection.execute(f"PRAGMA {pragma}")) as answer:
        (value,) = answer.fetchone()
    number: int = value
    return number
