"""Other ways to start a process, which own nothing but that process."""

import gc
import os
import subprocess
import time

import trio

from benchmarks.effort import Effort, Figures, rss_kib
from benchmarks.process.sessionmgr_trees import BURST, CHILDREN, PAUSE
from benchmarks.process.stopwatch import Laps

PIPE = subprocess.PIPE


async def _open() -> trio.Process:
    return await trio.lowlevel.open_process(
        ["cat"], stdin=PIPE, stdout=PIPE, stderr=PIPE, cwd="/", env={"PATH": os.environ["PATH"]}
    )


async def _close(process: trio.Process) -> None:
    process.kill()
    await process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        assert stream is not None
        await stream.aclose()


def spawn(effort: Effort) -> Figures:
    """Start children with trio; ms until each runs."""
    one, many = Laps(), Laps()

    async def main() -> Figures:
        for _ in range(effort.population(300)):
            await trio.sleep(PAUSE)
            with one.lap():
                process = await _open()
            await _close(process)
        for _ in range(effort.repeats(9)):
            await _burst(many)
        return {"one": one.median, "many": many.median / BURST}

    return trio.run(main)


async def _burst(laps: Laps) -> None:
    processes: list[trio.Process] = []

    async def start() -> None:
        processes.append(await _open())

    with laps.lap():
        async with trio.open_nursery() as nursery:
            for _ in range(BURST):
                nursery.start_soon(start)
    for process in processes:
        await _close(process)


def popen(effort: Effort) -> Figures:
    """Start children with subprocess; ms until each runs."""
    one = Laps()
    for _ in range(effort.population(300)):
        time.sleep(PAUSE)
        with one.lap():
            process = subprocess.Popen(
                ["cat"],
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                cwd="/",
                env={"PATH": os.environ["PATH"]},
            )
        process.kill()
        process.communicate()
    return {"one": one.median}


def kill(effort: Effort) -> Figures:
    """Kill a process of trio; ms until its end is known."""
    lone = Laps()

    async def main() -> Figures:
        for _ in range(effort.population(200)):
            process = await _open()
            await trio.sleep(PAUSE)
            with lone.lap():
                process.kill()
                await process.wait()
            await _close(process)
        return {"lone": lone.median}

    return trio.run(main)


def memory(effort: Effort) -> Figures:
    """Measure the memory of live processes of trio."""
    count = effort.population(CHILDREN)

    async def main() -> Figures:
        await _close(await _open())
        gc.collect()
        before = rss_kib()
        files = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
        processes = [await _open() for _ in range(count)]
        gc.collect()
        files = len(os.listdir("/proc/self/fd")) - files  # noqa: PTH208
        found: Figures = {"kib": (rss_kib() - before) / count, "fds": files / count}
        for process in processes:
            await _close(process)
        return found

    return trio.run(main)
