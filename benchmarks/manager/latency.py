"""Latency of one line from a child's `write` to a session's subscriber: wall time, p50."""

import asyncio  # noqa: TID251  # a contestant
import json
import sys
import time
from statistics import median
from subprocess import PIPE
from typing import Any, ClassVar, Final, cast

import trio

from benchmarks.effort import Effort, Figures
from benchmarks.manager.claude import events_of, send_events
from benchmarks.manager.end_to_end import open_bench_manager
from benchmarks.wire.measured_frame import MEBI, line_of
from sessionmgr.adapter import ProviderAdapter, RunContext
from sessionmgr.model import MessageStreamed, RunStarted, encode_events, stamp
from sessionmgr.wire.lines import LineDecoder

LINES: Final = 1000
EVERY: Final = 0.002
# The text of each line is the time of its write, by the clock that all processes share.
WRITER: Final = """
import os, sys, time
line, lines, every = sys.argv[1].encode() + b"\\n", int(sys.argv[2]), float(sys.argv[3])
for _ in range(lines):
    time.sleep(every)
    os.write(1, line.replace(b"MOMENT", b"%d" % time.monotonic_ns()))
"""


def writer(lines: int) -> list[str]:
    """Return the command of the child."""
    shape = line_of("MOMENT").decode().strip()
    return [sys.executable, "-c", WRITER, shape, str(lines), str(EVERY)]


class TimedAdapter(ProviderAdapter):
    """An adapter that starts that child."""

    name: ClassVar[str] = "timed"

    async def run(self, run: RunContext) -> None:
        await run.emit(RunStarted(provider_session_id=run.session_id))
        await send_events(run, writer(int(run.prompt)))
        await run.finish()


def _late(moment: str) -> float:
    return (time.monotonic_ns() - int(moment)) / 1000


def through_memory(effort: Effort) -> Figures:
    """Measure adapter, recorder and subscriber with a store in memory."""
    return trio.run(_through, effort, False)


def through_sqlite(effort: Effort) -> Figures:
    """The same in SQLite: an event is stored before the subscriber receives it."""
    return trio.run(_through, effort, True)


async def _through(effort: Effort, sqlite: bool) -> Figures:
    lines = effort.operations(LINES)
    async with open_bench_manager(TimedAdapter, sqlite=sqlite) as manager:
        session = await manager.open_session(TimedAdapter.name)
        async with session.start(str(lines)) as run:
            found = [
                _late(event.delta) async for event in run if isinstance(event, MessageStreamed)
            ]
    return {"line": median(found)}


def floor(effort: Effort) -> Figures:
    """Do the minimum that the laws require with trio alone: store a line, then deliver it."""
    return trio.run(_floor, effort.operations(LINES))


async def _floor(lines: int) -> Figures:
    found: list[float] = []
    stored: list[bytes] = []
    shown: list[MessageStreamed] = []
    sending, receiving = trio.open_memory_channel[MessageStreamed](64)
    rung = trio.Event()

    async def record() -> None:
        nonlocal rung
        async for event in receiving:
            stamped = stamp([event], len(stored) + 1, "", "ses", "run", TimedAdapter.name)
            stored.extend(encode_events(stamped)[0])
            await trio.lowlevel.checkpoint()  # a store is asynchronous
            shown.extend(stamped)
            rung.set()
            rung = trio.Event()

    async def follow() -> None:
        while len(found) < lines:
            if len(found) == len(shown):
                await rung.wait()
            found.extend([_late(event.delta) for event in shown[len(found) :]])

    child = await trio.lowlevel.open_process(writer(lines), stdout=PIPE)
    assert child.stdout is not None
    decoder = LineDecoder()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(record)
        nursery.start_soon(follow)
        async for data in child.stdout:
            for event in events_of(decoder.feed(data)):
                sending.send_nowait(cast("MessageStreamed", event))
        sending.close()
    await child.wait()
    return {"line": median(found)}


def readline_json(effort: Effort) -> Figures:
    """Read lines as asyncio programs do: `readline`, `json.loads`, a `Queue` to the consumer."""
    return asyncio.run(_readline_json(effort.operations(LINES)))


async def _readline_json(lines: int) -> Figures:
    queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue(64)
    found: list[float] = []

    async def consume() -> None:
        for _ in range(lines):
            frame = await queue.get()
            found.append(_late(frame["event"]["delta"]["text"]))

    child = await asyncio.create_subprocess_exec(*writer(lines), stdout=PIPE, limit=64 * MEBI)
    assert child.stdout is not None
    consumer = asyncio.create_task(consume())
    while line := await child.stdout.readline():
        await queue.put(cast("dict[str, Any]", json.loads(line)))
    await consumer
    await child.wait()
    return {"line": median(found)}
