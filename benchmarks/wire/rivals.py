"""How others read a child's lines: asyncio, by the line as everybody does it, and by the read."""

import asyncio  # noqa: TID251  # a contestant
import json
from collections.abc import Awaitable, Callable
from statistics import median
from subprocess import PIPE
from typing import Any, TypeAlias, cast

from benchmarks.effort import BLOCKS, Effort, Figures, Stopwatch, cpu
from benchmarks.wire.frame import LINE, MEBI, Event, Streamed, normalised, written
from benchmarks.wire.ours import BATCHES, DECODER, EVENTS, READ

Reading: TypeAlias = Callable[[asyncio.StreamReader, int], Awaitable[None]]

_ROOM = 64


def readline_json(effort: Effort) -> Figures:
    """`readline`, `json.loads`, a `Queue` to the consumer."""

    def decode(line: bytes) -> Event | None:
        frame = cast("dict[str, Any]", json.loads(line))
        if frame["type"] == "stream_event":
            event = frame["event"]
            if event["type"] == "content_block_delta" and event["delta"]["type"] == "text_delta":
                return Streamed(frame["session_id"], event["delta"]["text"])
        return None

    return asyncio.run(by_line(effort, LINE, decode))


def readline_msgspec(effort: Effort) -> Figures:
    """The same, decoded as we do it."""
    return asyncio.run(by_line(effort, LINE, lambda line: normalised(DECODER.decode(line))))


def batches_msgspec(effort: Effort) -> Figures:
    """By the read, decoded as we do it, each batch through a `Queue`."""

    async def read(stdout: asyncio.StreamReader, lines: int) -> None:
        queue: asyncio.Queue[list[Event]] = asyncio.Queue(BATCHES)

        async def consume() -> None:
            left = lines
            while left > 0:
                left -= len(await queue.get())

        consumer = asyncio.create_task(consume())
        tail = b""
        while chunk := await stdout.read(READ):
            whole = (tail + chunk).split(b"\n")
            tail = whole.pop()
            events = [normalised(DECODER.decode(line)) for line in whole]
            await queue.put([event for event in events if event is not None])
        await consumer

    return asyncio.run(_timed(effort, LINE, read))


async def by_line(effort: Effort, line: bytes, decode: Callable[[bytes], Event | None]) -> Figures:
    """Take such lines with `readline`, and pass what is made of each through a `Queue`."""

    async def read(stdout: asyncio.StreamReader, lines: int) -> None:
        queue: asyncio.Queue[Event] = asyncio.Queue(_ROOM)

        async def consume() -> None:
            for _ in range(lines):
                await queue.get()

        consumer = asyncio.create_task(consume())
        while said := await stdout.readline():
            event = decode(said)
            if event is not None:
                await queue.put(event)
        await consumer

    return await _timed(effort, line, read)


async def _timed(effort: Effort, line: bytes, read: Reading) -> Figures:
    lines = effort.operations(EVENTS)
    await _once(read, line, max(lines // 10, 1), Stopwatch(cpu))  # warm
    costs: list[float] = []
    for _ in range(effort.repeats(BLOCKS)):
        watch = Stopwatch(cpu)
        await _once(read, line, lines, watch)
        costs.append(watch.micros / lines)
    return {"event": median(costs)}


async def _once(read: Reading, line: bytes, lines: int, watch: Stopwatch) -> None:
    with written(lines, line) as path:
        child = await asyncio.create_subprocess_exec("cat", path, stdout=PIPE, limit=64 * MEBI)
        assert child.stdout is not None
        with watch:
            await read(child.stdout, lines)
        await child.wait()
