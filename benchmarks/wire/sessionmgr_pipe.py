"""The path of sessionmgr from a child's pipe to a consumer of events."""

import subprocess
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

import msgspec
import trio

from benchmarks.effort import Effort, Figures, Stopwatch, cpu
from benchmarks.wire.measured_frame import Event, Frame, line_of, normalise, write_lines
from sessionmgr.process.pump import PipePump
from sessionmgr.wire.lines import Line, LineDecoder, decode_frames

EVENTS: Final = 100_000
READ: Final = 65_536
BATCHES: Final = 4
DECODER: Final = msgspec.json.Decoder(Frame)


def events_of(lines: Sequence[Line]) -> list[Event]:
    """Decode the lines of one read, as an adapter does."""
    frames = decode_frames(lines, DECODER)
    return [event for frame in frames if (event := normalise(frame)) is not None]


class BatchRelay:
    """Passes each batch to a consumer: the reader waits only when the consumer is behind."""

    def __init__(self) -> None:
        self._sending, self._receiving = trio.open_memory_channel[list[Event]](BATCHES)
        self._batch: list[Event] = []

    def take(self, lines: Sequence[Line]) -> None:
        self._batch = events_of(lines)

    async def room(self) -> None:
        await self._sending.send(self._batch)

    async def consume(self, wanted: int) -> None:
        while wanted > 0:
            wanted -= len(await self._receiving.receive())


async def _through_a_child(command: Sequence[str], watch: Stopwatch, lines: int) -> None:
    with write_lines(lines) as path:
        await _pump([*command, path], watch, lines)


async def _pump(command: Sequence[str], watch: Stopwatch, lines: int) -> None:
    relay = BatchRelay()
    pump = PipePump(relay.take, room=relay.room)
    child = await trio.lowlevel.open_process(
        list(command), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert child.stdout is not None
    assert child.stderr is not None
    serve = partial(
        pump.run, stdin=None, stdout=child.stdout, stderr=child.stderr, exited=child.wait
    )
    with watch:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(relay.consume, lines)
            nursery.start_soon(serve)
    await child.wait()


def _timed(effort: Effort, run: Callable[[Stopwatch, int], Awaitable[object]]) -> Figures:
    async def main() -> Figures:
        return {"event": await effort.time_part(run, EVENTS)}

    return trio.run(main)


def pipe(effort: Effort) -> Figures:
    """Read from a child that writes as fast as it can."""
    return _timed(effort, partial(_through_a_child, ["cat"]))


def line_by_line(effort: Effort) -> Figures:
    """Read from a child that writes each line by itself."""
    return _timed(effort, partial(_through_a_child, ["grep", "--line-buffered", ""]))


def framer(effort: Effort) -> Figures:
    """Split lines in memory, nothing else."""

    async def run(watch: Stopwatch, lines: int) -> None:
        with write_lines(lines) as path:
            chunks = chunks_of(path)
        decoder = LineDecoder()
        with watch:
            for chunk in chunks:
                decoder.feed(chunk)
        await trio.lowlevel.checkpoint()

    return _timed(effort, run)


def chunks_of(path: str) -> list[bytes]:
    """Read a file in chunks of the size that a pipe gives."""
    with open(path, "rb") as file:  # noqa: PTH123  # the loop is the same everywhere
        return list(iter(partial(file.read, READ), b""))


def long_line(effort: Effort, size: int) -> Figures:
    """Split one line of so many bytes, once, since a second one would find warm memory; in ms.

    The allocator treats freed memory differently below and above 32 MiB, and is not ours.
    """

    async def main() -> Figures:
        watch = Stopwatch(cpu)
        for length, watched in ((effort.operations(EVENTS), Stopwatch(cpu)), (size, watch)):
            text = "x" * (length + 1 - len(line_of("")))
            with write_lines(1, line_of(text)) as path:
                await _pump(["cat", path], watched, 1)
        return {"line": watch.micros / 1000}

    return trio.run(main)
