"""Lower bounds: lines to events in memory in one loop, and rows into a bare table."""

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.effort import BLOCKS, Effort, Figures, Stopwatch, cpu
from benchmarks.wire.measured_frame import LENGTH, line_of
from benchmarks.wire.sessionmgr_pipe import EVENTS
from sessionmgr.model import MessageStreamed, encode_event

BATCH: Final = 256
AUTOCHECKPOINT: Final = 16_384


def executemany(effort: Effort, events: int = EVENTS) -> Figures:
    """Append rows of the size of our events to a table with integer keys, 256 per transaction."""
    rows = effort.operations(events)
    body = example()
    costs: list[float] = []
    for _ in range(1 + effort.repeats(BLOCKS)):
        watch = Stopwatch(cpu)
        with tempfile.TemporaryDirectory(prefix="sessionmgr-benchmark-") as directory:
            _append(Path(directory, "bare.db"), body, rows, watch)
        costs.append(watch.micros / rows)
    return {"event": median(costs[1:])}


def example() -> bytes:
    """Return the record of a measured event."""
    event = MessageStreamed(delta="x" * (LENGTH + 1 - len(line_of("")))).stamped(
        seq=123_456,
        at="2026-01-02T03:04:05.678Z",
        session_id="ses_0123456789abcdefghjk",
        run_id="run_0123456789abcdefghjk",
        provider="claude-like",
    )
    return encode_event(event)


def _append(path: Path, body: bytes, rows: int, watch: Stopwatch) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        execute = connection.execute
        execute("PRAGMA journal_mode=WAL")
        execute("PRAGMA synchronous=NORMAL")
        execute(f"PRAGMA wal_autocheckpoint={AUTOCHECKPOINT}")
        execute("CREATE TABLE events (id INTEGER PRIMARY KEY, run INTEGER, seq INTEGER, body BLOB)")
        with watch:
            for first in range(1, rows + 1, BATCH):
                execute("BEGIN IMMEDIATE")
                connection.executemany(
                    "INSERT INTO events (run, seq, body) VALUES (?, ?, ?)",
                    [(1, seq, body) for seq in range(first, min(first + BATCH, rows + 1))],
                )
                execute("COMMIT")
