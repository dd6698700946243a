"""Costs of our process trees."""

import gc
import os
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import trio

from benchmarks.effort import Effort, Figures, rss_kib
from benchmarks.process.stopwatch import Laps
from sessionmgr.process.command import Command
from sessionmgr.process.launcher_factory import LauncherKind, open_launcher
from sessionmgr.process.linux.launcher import SpawnerLauncher
from sessionmgr.process.linux.tree import ReaperTree

CAT: Final = Command(argv=("cat",), cwd="/", env={"PATH": os.environ["PATH"]})
NINE_PROCESSES: Final = Command(
    argv=("sh", "-c", "for i in 1 2 3 4 5 6 7 8; do (setsid cat &); done; echo; exec cat"),
    cwd="/",
    env={"PATH": os.environ["PATH"]},
)
"""Nine processes in nine sessions; eight of them have lost their parents."""
CHILDREN: Final = 200
BURST: Final = 60
PAUSE: Final = 0.01
"""Seconds between two starts: agents do not start in a burst; `burst` measures that case."""


@asynccontextmanager
async def open_spawner_launcher() -> AsyncGenerator[SpawnerLauncher, None]:
    """Open a launcher with a spawner."""
    with tempfile.TemporaryDirectory() as place:
        async with open_launcher(state_dir=Path(place), kind=LauncherKind.SPAWNER) as launcher:
            assert isinstance(launcher, SpawnerLauncher)
            yield launcher


async def end(tree: ReaperTree) -> None:
    """End a tree."""
    tree.kill()
    await tree.wait_empty()
    await tree.aclose()


def spawn(effort: Effort) -> Figures:
    """Start children, one after another and many at once; ms until each runs."""
    one, many = Laps(), Laps()

    async def main() -> Figures:
        async with open_spawner_launcher() as launcher:
            for _ in range(effort.population(300)):
                await trio.sleep(PAUSE)
                with one.lap():
                    tree = await launcher.spawn(CAT)
                await end(tree)
            for _ in range(effort.repeats(9)):
                await burst(launcher, many)
            return {"one": one.median, "many": many.median / BURST}

    return trio.run(main)


async def burst(launcher: SpawnerLauncher, laps: Laps) -> None:
    """Start many children at once."""
    trees: list[ReaperTree] = []

    async def start() -> None:
        trees.append(await launcher.spawn(CAT))

    with laps.lap():
        async with trio.open_nursery() as nursery:
            for _ in range(BURST):
                nursery.start_soon(start)
    for tree in trees:
        await end(tree)


def kill(effort: Effort) -> Figures:
    """Kill trees; ms from the kill to the proof that no process is left."""
    lone, family = Laps(), Laps()

    async def kill_one(tree: ReaperTree, laps: Laps) -> None:
        await trio.sleep(PAUSE)
        with laps.lap():
            tree.kill()
            await tree.wait_empty()
        await tree.aclose()

    async def main() -> Figures:
        async with open_spawner_launcher() as launcher:
            for _ in range(effort.population(200)):
                await kill_one(await launcher.spawn(CAT), lone)
                tree = await launcher.spawn(NINE_PROCESSES)
                await tree.stdout.receive_some()
                await kill_one(tree, family)
            return {"lone": lone.median, "family": family.median}

    return trio.run(main)


def memory(effort: Effort) -> Figures:
    """Measure the memory of live children: in our process, and in the reaper of each."""
    count = effort.population(CHILDREN)

    async def main() -> Figures:
        async with open_spawner_launcher() as launcher:
            for _ in range(3):
                await end(await launcher.spawn(CAT))
            gc.collect()
            rss, files = rss_kib(), _open_files()
            trees = [await launcher.spawn(CAT) for _ in range(count)]
            gc.collect()
            rss, files = rss_kib() - rss, _open_files() - files
            guards = [_private_kib(tree.reaper[0]) for tree in trees]
            return {"kib": rss / count, "fds": files / count, "guard": sum(guards) / count}

    return trio.run(main)


def _open_files() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


def _private_kib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(float(line.split()[1]) for line in lines if line.startswith("Private_"))
