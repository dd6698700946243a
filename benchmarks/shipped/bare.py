"""The least it could cost: the same lines in memory by one loop; and as asyncio is mostly used."""

import asyncio  # noqa: TID251  # a contestant
import json
from collections.abc import Callable
from statistics import median
from typing import Any, cast

from benchmarks.effort import BLOCKS, Effort, Figures, Stopwatch, cpu
from benchmarks.shipped.frames import DIALECTS, Normalise
from benchmarks.wire.frame import Streamed, written
from benchmarks.wire.ours import EVENTS, chunks_of
from benchmarks.wire.rivals import by_line
from sessionmgr.model import Event


def limit(effort: Effort, dialect: int) -> Figures:
    """Split, decode, normalise to the very events that the manager takes."""
    lines, agent = effort.operations(EVENTS), DIALECTS[dialect]
    with written(lines, agent.line) as path:
        chunks = chunks_of(path)
    costs: list[float] = []
    for _ in range(1 + effort.repeats(BLOCKS)):
        watch = Stopwatch(cpu)
        with watch:
            _normalise(chunks, agent.normalise)
        costs.append(watch.micros / lines)
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
    """`readline`, `json.loads`, a `Queue` to the consumer."""
    decode: Callable[[dict[str, Any]], Streamed] = (_of_claude, _of_codex)[dialect]
    line = DIALECTS[dialect].line
    return asyncio.run(
        by_line(effort, line, lambda said: decode(cast("dict[str, Any]", json.loads(said))))
    )


def _of_claude(frame: dict[str, Any]) -> Streamed:
    return Streamed(frame["session_id"], frame["event"]["delta"]["text"])


def _of_codex(frame: dict[str, Any]) -> Streamed:
    return Streamed(frame["params"]["threadId"], frame["params"]["delta"])
