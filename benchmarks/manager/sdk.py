"""The reading path of an agent SDK: each line through text, JSON, a generator and a channel.

The shape is that of claude-agent-sdk on asyncio, written again here: anyio decodes the chunks to
text, a framer concatenates them until they are JSON, a generator passes them to a memory stream of
100, and another one takes them out.
"""

import json
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from functools import partial
from importlib import import_module
from statistics import median
from subprocess import PIPE
from typing import Any, Final, Protocol, Self, cast

from benchmarks.effort import BLOCKS, Effort, Figures, Stopwatch, cpu
from benchmarks.wire.measured_frame import ConsumerDelta, write_lines
from benchmarks.wire.sessionmgr_pipe import EVENTS

ROOM: Final = 100


class _SendStream(Protocol):
    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *_: object) -> None: ...
    async def send(self, item: dict[str, Any]) -> None: ...


class _Tasks(Protocol):
    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *_: object) -> bool | None: ...
    def start_soon(self, function: Callable[..., Awaitable[object]], *args: object) -> None: ...


class _Child(Protocol):
    stdout: object

    async def wait(self) -> int: ...


class _Anyio(Protocol):
    """The used part of anyio, which the type checkers' environment may lack."""

    def run(self, function: Callable[[], Awaitable[Figures]], *, backend: str) -> Figures: ...
    async def open_process(self, command: list[str], *, stdout: int) -> _Child: ...
    def create_task_group(self) -> _Tasks: ...
    def create_memory_object_stream(
        self, room: int
    ) -> tuple[_SendStream, AsyncIterator[dict[str, Any]]]: ...


def shape(effort: Effort) -> Figures:
    """Read a child's frames in this way."""
    anyio = cast("_Anyio", import_module("anyio"))
    return anyio.run(partial(_timed, anyio, effort), backend="asyncio")


async def _timed(anyio: _Anyio, effort: Effort) -> Figures:
    lines = effort.operations(EVENTS)
    await _once(anyio, max(lines // 10, 1), Stopwatch(cpu))  # warm-up
    costs: list[float] = []
    for _ in range(effort.repeats(BLOCKS)):
        watch = Stopwatch(cpu)
        await _once(anyio, lines, watch)
        costs.append(watch.micros / lines)
    return {"event": median(costs)}


async def _once(anyio: _Anyio, lines: int, watch: Stopwatch) -> None:
    with write_lines(lines) as path:
        child = await anyio.open_process(["cat", path], stdout=PIPE)
        text = import_module("anyio.streams.text").TextReceiveStream(child.stdout)
        sending, receiving = anyio.create_memory_object_stream(ROOM)
        seen = 0
        with watch:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_send, sending, text)
                async for frame in _received(receiving):
                    seen += _normalise(frame) is not None
        await child.wait()
    if seen != lines:
        sys.exit(f"{seen} of {lines} events arrived")


async def _frames(  # noqa: ASYNC900  # so it is done there
    text: AsyncIterator[str],
) -> AsyncGenerator[dict[str, Any], None]:
    held = ""
    async for chunk in text:
        for piece in chunk.split("\n"):
            held += piece
            try:
                frame = json.loads(held)
            except json.JSONDecodeError:
                continue  # the rest is in the next chunk
            held = ""
            yield frame


async def _send(sending: _SendStream, text: AsyncIterator[str]) -> None:
    async with sending:
        async for frame in _frames(text):
            await sending.send(frame)


async def _received(  # noqa: ASYNC900  # so it is done there
    receiving: AsyncIterator[dict[str, Any]],
) -> AsyncGenerator[dict[str, Any], None]:
    async for frame in receiving:
        yield frame


def _normalise(frame: dict[str, Any]) -> ConsumerDelta | None:
    if frame["type"] == "stream_event":
        event = frame["event"]
        if event["type"] == "content_block_delta" and event["delta"]["type"] == "text_delta":
            return ConsumerDelta(frame["session_id"], event["delta"]["text"])
    return None
