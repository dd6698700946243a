"""The same rows in the same tables with SQLite alone: no thread, no rules, no waiting readers."""

import sqlite3
from contextlib import closing
from pathlib import Path

import trio

from benchmarks.effort import Effort, Figures, Stopwatch, cpu
from benchmarks.store.store_files import BODY, database_path
from sessionmgr.store.sqlite.connection import SqliteOptions, open_writer

INSERT = "INSERT INTO events (session, seq, run, type, batch, body) VALUES (?, ?, ?, ?, ?, ?)"


def groups(effort: Effort) -> Figures:
    """Insert 256 rows per transaction; µs of CPU per row."""
    return {"event": _insert(effort, 256, 256 * 200)}


def singles(effort: Effort) -> Figures:
    """Insert one row per transaction; µs of CPU per row."""
    return {"event": _insert(effort, 1, 64 * 100)}


def _insert(effort: Effort, group: int, wanted: int) -> float:
    async def main(path: Path) -> float:
        with closing(open_writer(SqliteOptions(path=path))) as connection:
            last = 0

            async def run(watch: Stopwatch, events: int) -> None:
                nonlocal last
                groups = [
                    [
                        (1, seq, None, "message_streamed", None, BODY)
                        for seq in range(first, first + group)
                    ]
                    for first in range(last + 1, last + events + 1, group)
                ]
                last = groups[-1][-1][1]
                with watch:
                    for each in groups:
                        connection.execute("BEGIN IMMEDIATE")
                        connection.executemany(INSERT, each)
                        connection.execute("COMMIT")

            return await effort.time_part(run, wanted, cpu)

    with database_path() as path:
        return trio.run(main, path)


def pages(effort: Effort) -> Figures:
    """Fetch 500 rows at a time; µs of CPU per row."""

    async def main(path: Path) -> float:
        with closing(open_writer(SqliteOptions(path=path))) as connection:
            rows = [(1, seq, None, "message_streamed", None, BODY) for seq in range(1, 20_001)]
            connection.execute("BEGIN")
            connection.executemany(INSERT, rows)
            connection.execute("COMMIT")

            async def run(events: int) -> None:
                after = 0
                for _ in range(0, events, 500):
                    after = _last(connection, after)

            return await effort.time(run, 50_000, cpu)

    with database_path() as path:
        return {"event": trio.run(main, path)}


def _last(connection: sqlite3.Connection, after: int) -> int:
    page = connection.execute(
        "SELECT seq, run, type, body FROM events WHERE session = 1 AND seq > ?"
        " ORDER BY seq LIMIT 500",
        (after,),
    ).fetchall()
    last: int = page[-1][0]
    return 0 if last == 20_000 else last
