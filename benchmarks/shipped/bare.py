"""The least it could cost: the same lines in memory by one loop; and as asyncio is mostly used.

All read the file that the child of the shipped adapters plays. A figure is for a piece of text, and
includes its share of the other lines of a message.
"""

import asyncio  # noqa: TID251  # a contestant
import json
from collections.abc import Callable
from statistics import median
from typing import Any, cast

from benchmarks.effort import BLOCKS, Effort, Figures, Stopwatch, cpu
from benchmarks.shipped.frames import DIALECTS, Normalise
from benchmarks.wire.frame import Streamed
from benchmarks.wire.ours import EVENTS, chunks_of
from benchmarks.wire.rivals import by_line
from sessionmgr.model import Event


def limit(effort: Effort, dialect: int) -> Figures:
    """Split, decode, normalise to the very events that the manager takes."""
    pieces, agent = effort.operations(EVENTS), DIALECTS[dialect]
    with agent.written(pieces) as path:
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


def readline_json(effort: Effort, dialect: int) -> Figures:
    """`readline`, `json.loads`, a `Queue` to the consumer, who takes pieces and whole messages."""
    decode: Callable[[dict[str, Any]], Streamed | None] = (_of_claude, _of_codex)[dialect]
    return asyncio.run(
        by_line(
            effort,
            DIALECTS[dialect].written,
            lambda line: decode(cast("dict[str, Any]", json.loads(line))),
        )
    )


def _of_claude(frame: dict[str, Any]) -> Streamed | None:
    if frame["type"] == "stream_event":
        event = frame["event"]
        if event["type"] == "content_block_delta" and event["delta"]["type"] == "text_delta":
            return Streamed(frame["session_id"], event["delta"]["text"])
        return None
    return Streamed(frame["session_id"], frame["message"]["content"][0]["text"])


def _of_codex(frame: dict[str, Any]) -> Streamed | None:
    method, params = frame["method"], frame["params"]
    if method == "item/agentMessage/delta":
        return Streamed(params["threadId"], params["delta"])
    if method == "item/completed":
        return Streamed(params["threadId"], params["item"]["text"])
    return None
