"""Lower bounds: the same lines in memory in one loop, and the usual asyncio program.

All read the file that the child of the shipped adapters plays. A figure is the cost of a piece of
text, including its share of the other lines of a message.
"""

import asyncio  # noqa: TID251  # a contestant
import json
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any, Final, cast

from benchmarks.effort import BLOCKS, Effort, Figures, Stopwatch, cpu
from benchmarks.shipped.frames import DIALECTS, Normalise
from benchmarks.wire.alternatives import by_line
from benchmarks.wire.measured_frame import ConsumerDelta
from benchmarks.wire.sessionmgr_pipe import EVENTS, chunks_of
from sessionmgr.model import Event, stamp
from sessionmgr.model.event import encode_events
from sessionmgr.store.sqlite.connection import SqliteOptions, open_writer

TOGETHER: Final = 1024
"""Rows per transaction."""


def limit(effort: Effort, dialect: int) -> Figures:
    """Split, decode, and normalise to the same events that the manager receives."""
    pieces, agent = effort.operations(EVENTS), DIALECTS[dialect]
    with agent.write_lines(pieces) as path:
        chunks = chunks_of(path)
    costs: list[float] = []
    for _ in range(1 + effort.repeats(BLOCKS)):
        watch = Stopwatch(cpu)
        with watch:
            _normalise(chunks, agent.normalise)
        costs.append(watch.micros / pieces)
    return {"event": median(costs[1:])}


def _normalise(chunks: list[bytes], normalise: Normalise) -> None:
    tail = b""
    for chunk in chunks:
        lines = (tail + chunk).split(b"\n")
        tail = lines.pop()
        events: list[Event] = []
        for line in lines:
            event = normalise(line)
            if event is not None:
                events.append(event)


def record(effort: Effort, dialect: int) -> Figures:
    """Timestamp and encode the pieces, and insert them into the tables of our store.

    It leaves out redaction, folds, leases, checks, threads and subscribers.
    """
    pieces, agent = effort.operations(EVENTS), DIALECTS[dialect]
    events = [event for line in agent.lines(pieces) if (event := agent.normalise(line)) is not None]
    costs: list[float] = []
    for _ in range(1 + effort.repeats(BLOCKS)):
        watch = Stopwatch(cpu)
        with tempfile.TemporaryDirectory(prefix="sessionmgr-benchmark-") as directory:
            _insert(SqliteOptions(path=Path(directory, "bare.db")), events, watch)
        costs.append(watch.micros / pieces)
    return {"event": median(costs[1:])}


def _insert(options: SqliteOptions, events: list[Event], watch: Stopwatch) -> None:
    with closing(open_writer(options)) as connection, watch:
        for first in range(0, len(events), TOGETHER):
            made = stamp(
                events[first : first + TOGETHER],
                first,
                "2026-01-02T03:04:05.678Z",
                "ses_0123456789abcdefghjk",
                "run_0123456789abcdefghjk",
                "claude",
            )
            bodies, _ = encode_events(made)
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(
                "INSERT INTO events (session, batch, seq, run, type, body)"
                " VALUES (1, NULL, ?, 1, ?, ?)",
                [(of.seq, of.type, body) for of, body in zip(made, bodies, strict=True)],
            )
            connection.execute("COMMIT")


def readline_json(effort: Effort, dialect: int) -> Figures:
    """Use `readline`, `json.loads`, and a `Queue` to a consumer of pieces and whole messages."""
    decode: Callable[[dict[str, Any]], ConsumerDelta | None] = (_of_claude, _of_codex)[dialect]
    return asyncio.run(
        by_line(
            effort,
            DIALECTS[dialect].write_lines,
            lambda line: decode(cast("dict[str, Any]", json.loads(line))),
        )
    )


def _of_claude(frame: dict[str, Any]) -> ConsumerDelta | None:
    if frame["type"] == "stream_event":
        event = frame["event"]
        if event["type"] == "content_block_delta" and event["delta"]["type"] == "text_delta":
            return ConsumerDelta(frame["session_id"], event["delta"]["text"])
        return None
    return ConsumerDelta(frame["session_id"], frame["message"]["content"][0]["text"])


def _of_codex(frame: dict[str, Any]) -> ConsumerDelta | None:
    method, params = frame["method"], frame["params"]
    if method == "item/agentMessage/delta":
        return ConsumerDelta(params["threadId"], params["delta"])
    if method == "item/completed":
        return ConsumerDelta(params["threadId"], params["item"]["text"])
    return None
