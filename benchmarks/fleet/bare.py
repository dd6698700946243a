"""The same with trio alone: channels, consumers, and one transaction at intervals for all of them.

Consumers receive a piece before it is stored.
"""

import sqlite3
import tempfile
from collections.abc import AsyncIterable
from contextlib import closing
from pathlib import Path
from typing import Final, TypeAlias

import msgspec
import trio

from benchmarks.effort import Effort, Figures
from benchmarks.fleet.pieces import BenchFleet, fleet

WINDOW: Final = 0.025
CAPACITY: Final = 64

Row: TypeAlias = tuple[int, int, bytes]


class PieceRow(msgspec.Struct, gc=False):
    """The stored row of a piece."""

    session: int
    seq: int
    delta: str


def pieces(effort: Effort, sessions: int) -> Figures:
    """Send pieces in so many tasks, and consume and store them in as many."""
    return trio.run(_main, fleet(effort, sessions))


async def _main(measured: BenchFleet) -> Figures:
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="sessionmgr-benchmark-") as directory:
        path = Path(directory, "bare.db")
        with closing(
            sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        ) as connection:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute("CREATE TABLE events (session INTEGER, seq INTEGER, body BLOB)")
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_record, connection, rows)
                for number in range(measured.sessions):
                    sending, receiving = trio.open_memory_channel[str](CAPACITY)
                    nursery.start_soon(measured.source, number, sending.send_nowait)
                    nursery.start_soon(_consume, measured, number, receiving, rows)
                await measured.over.wait()
                nursery.cancel_scope.cancel()
    return measured.figures()


async def _consume(
    measured: BenchFleet, number: int, receiving: AsyncIterable[str], rows: list[Row]
) -> None:
    measured.ready()
    seq = 0
    async for piece in receiving:
        seq += 1
        rows.append((number, seq, msgspec.json.encode(PieceRow(number, seq, piece))))
        measured.receive(piece)


async def _record(connection: sqlite3.Connection, rows: list[Row]) -> None:
    while True:
        await trio.sleep(WINDOW)
        batch = rows.copy()
        rows.clear()
        if batch:
            await trio.to_thread.run_sync(_append, connection, batch)


def _append(connection: sqlite3.Connection, batch: list[Row]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany("INSERT INTO events (session, seq, body) VALUES (?, ?, ?)", batch)
    connection.execute("COMMIT")
