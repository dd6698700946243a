"""Other ways to read a child's lines: asyncio, by the line as is usual, and by the read."""

import asyncio  # noqa: TID251  # a contestant
import json
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from statistics import median
from subprocess import PIPE
from typing import Any, TypeAlias, cast

from benchmarks.effort import BLOCKS, Effort, Figures, Stopwatch, cpu
from benchmarks.wire.measured_frame import MEBI, ConsumerDelta, Event, normalise, write_lines
from benchmarks.wire.sessionmgr_pipe import BATCHES, DECODER, EVENTS, READ

Reading: TypeAlias = Callable[[asyncio.StreamReader], Awaitable[None]]
Writing: TypeAlias = Callable[[int], AbstractContextManager[str]]
"""Writes a file of lines with so many pieces of text, and returns its path."""

_ROOM = 64


def readline_json(effort: Effort) -> Figures:
    """Use `readline`, `json.loads`, and a `Queue` to the consumer."""

    def decode(line: bytes) -> Event | None:
        frame = cast("dict[str, Any]", json.loads(line))
        if frame["type"] == "stream_event":
            event = frame["event"]
            if event["type"] == "content_block_delta" and event["delta"]["type"] == "text_delta":
                return ConsumerDelta(frame["session_id"], event["delta"]["text"])
        return None

    return asyncio.run(by_line(effort, write_lines, decode))


def readline_msgspec(effort: Effort) -> Figures:
    """The same with our decoding."""
    return asyncio.run(by_line(effort, write_lines, lambda line: normalise(DECODER.decode(line))))


def batches_msgspec(effort: Effort) -> Figures:
    """Read chunks, decode them as we do, and pass each batch through a `Queue`."""

    async def read(stdout: asyncio.StreamReader) -> None:
        queue: asyncio.Queue[list[Event]] = asyncio.Queue(BATCHES)

        async def consume() -> None:
            while await queue.get():
                pass

        consumer = asyncio.create_task(consume())
        tail = b""
        while chunk := await stdout.read(READ):
            whole = (tail + chunk).split(b"\n")
            tail = whole.pop()
            events = [normalise(DECODER.decode(line)) for line in whole]
            if found := [event for event in events if event is not None]:
                await queue.put(found)
        await queue.put([])
        await consumer

    return asyncio.run(_timed(effort, write_lines, read))


async def by_line(
    effort: Effort, write: Writing, decode: Callable[[bytes], Event | None]
) -> Figures:
    """Read lines with `readline`, and pass the event of each through a `Queue`."""

    async def read(stdout: asyncio.StreamReader) -> None:
        queue: asyncio.Queue[Event | None] = asyncio.Queue(_ROOM)

        async def consume() -> None:
            while await queue.get() is not None:
                pass

        consumer = asyncio.create_task(consume())
        while line := await stdout.readline():
            event = decode(line)
            if event is not None:
                await queue.put(event)
        await queue.put(None)
        await consumer

    return await _timed(effort, write, read)


async def _timed(effort: Effort, write: Writing, read: Reading) -> Figures:
    pieces = effort.operations(EVENTS)
    await _once(read, write, max(pieces // 10, 1), Stopwatch(cpu))  # warm-up
    costs: list[float] = []
    for _ in range(effort.repeats(BLOCKS)):
        watch = Stopwatch(cpu)
        await _once(read, write, pieces, watch)
        costs.append(watch.micros / pieces)
    return {"event": median(costs)}


async def _once(read: Reading, write: Writing, pieces: int, watch: Stopwatch) -> None:
    with write(pieces) as path:
        child = await asyncio.create_subprocess_exec("cat", path, stdout=PIPE, limit=64 * MEBI)
        assert child.stdout is not None
        with watch:
            await read(child.stdout)
        await child.wait()
