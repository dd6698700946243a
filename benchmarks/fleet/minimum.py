"""The minimum that the laws require: an event is stored as a whole before it is delivered.

One committer takes the pieces of all sessions, numbers and encodes them as our events, lets a
thread write them in one transaction with each session's last number, and then wakes each
subscriber once. It checks, folds, redacts and caches nothing.
"""

import sqlite3
import tempfile
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

import trio

from benchmarks.effort import Effort, Figures
from benchmarks.fleet.pieces import BenchFleet, fleet
from sessionmgr.model import MessageStreamed, encode_events, stamp

TOGETHER: Final = 64
"""Events per statement."""
CAPACITY: Final = 64
TIMESTAMP: Final = "2026-01-02T03:04:05.678Z"

Row: TypeAlias = tuple[int, int, int, str, bytes]


@dataclass(slots=True, eq=False)
class FloorSession:
    """One session, from its source to its subscriber."""

    number: int
    sending: trio.MemorySendChannel[str]
    receiving: trio.MemoryReceiveChannel[str]
    last: int = 0
    stored: list[MessageStreamed] = field(default_factory=list[MessageStreamed])
    rung: trio.Event = field(default_factory=trio.Event)

    def drain(self) -> list[Row]:
        """Number and encode the new pieces; they are delivered once they are written."""
        pieces: list[MessageStreamed] = []
        while self.receiving.statistics().current_buffer_used:
            pieces.append(MessageStreamed(delta=self.receiving.receive_nowait()))
        number = str(self.number)
        stamped = stamp(pieces, self.last + 1, TIMESTAMP, f"ses_{number}", f"run_{number}", "paced")
        bodies, _ = encode_events(stamped)
        self.stored += stamped
        first, self.last = self.last + 1, self.last + len(pieces)
        return [
            (self.number, seq, 1, "message_streamed", body)
            for seq, body in enumerate(bodies, first)
        ]

    def wake(self) -> None:
        """Wake the subscriber."""
        rung, self.rung = self.rung, trio.Event()
        rung.set()


class FloorCommitter:
    """Stores the pieces of all sessions at least every `window` seconds."""

    def __init__(self, connection: sqlite3.Connection, window: float) -> None:
        self._connection: Final = connection
        self._window: Final = window
        self._marked: dict[FloorSession, None] = {}
        self._wanted = trio.Event()

    def mark(self, session: FloorSession) -> None:
        """Mark a session as having new pieces."""
        self._marked[session] = None
        self._wanted.set()

    async def commit(self) -> None:
        """Commit until it is cancelled."""
        while True:
            await self._wanted.wait()
            await trio.sleep(self._window)
            marked, self._marked, self._wanted = self._marked, {}, trio.Event()
            rows = [row for session in marked for row in session.drain()]
            last = [(session.last, session.number) for session in marked]
            await trio.to_thread.run_sync(self._append, rows, last)
            for session in marked:
                session.wake()

    def _append(self, rows: list[Row], last: list[tuple[int, int]]) -> None:
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        for at in range(0, len(rows), TOGETHER):
            some = rows[at : at + TOGETHER]
            places = ", ".join(["(?, ?, ?, ?, ?)"] * len(some))
            values = [value for row in some for value in row]
            execute(f"INSERT INTO events (session, seq, run, type, body) VALUES {places}", values)
        self._connection.executemany("UPDATE sessions SET last = ? WHERE key = ?", last)
        execute("COMMIT")


def pieces(effort: Effort, sessions: int, window: int) -> Figures:
    """Send pieces from so many sources, store them within so many ms, and deliver each."""
    return trio.run(_main, fleet(effort, sessions), window / 1000)


async def _main(measured: BenchFleet, window: float) -> Figures:
    with tempfile.TemporaryDirectory(prefix="sessionmgr-benchmark-") as directory:
        path = Path(directory, "floor.db")
        with closing(
            sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        ) as connection:
            _prepare(connection, measured.sessions)
            async with trio.open_nursery() as nursery:
                committer = FloorCommitter(connection, window)
                nursery.start_soon(committer.commit)
                for number in range(measured.sessions):
                    session = FloorSession(number, *trio.open_memory_channel[str](CAPACITY))
                    nursery.start_soon(_source, measured, committer, session)
                    nursery.start_soon(_subscribe, measured, session)
                await measured.over.wait()
                nursery.cancel_scope.cancel()
    return measured.figures()


def _prepare(connection: sqlite3.Connection, sessions: int) -> None:
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute("PRAGMA wal_autocheckpoint=16384")
    connection.execute("CREATE TABLE sessions (key INTEGER PRIMARY KEY, last INTEGER)")
    connection.execute(
        "CREATE TABLE events (id INTEGER PRIMARY KEY, session INTEGER, seq INTEGER,"
        " run INTEGER, type TEXT, body BLOB)"
    )
    connection.execute("CREATE UNIQUE INDEX events_by_seq ON events (session, seq)")
    connection.executemany("INSERT INTO sessions VALUES (?, 0)", [(n,) for n in range(sessions)])


async def _source(measured: BenchFleet, committer: FloorCommitter, session: FloorSession) -> None:
    def tell(piece: str) -> None:
        session.sending.send_nowait(piece)
        committer.mark(session)

    await measured.source(session.number, tell)


async def _subscribe(measured: BenchFleet, session: FloorSession) -> None:
    measured.ready()
    seen = 0
    while True:
        await session.rung.wait()
        for event in session.stored[seen:]:
            measured.receive(event.delta)
        seen = len(session.stored)
