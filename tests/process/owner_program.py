"""Owner of trees, for tests to kill: `… tests.process.owner_program STATE NOTES SHAPES…`.

Each SHAPES is a tree, its shapes joined by commas. When all of them run it prints a line of JSON,
and then follows the commands that it reads from its standard input.
"""

import json
import os
import sys
from pathlib import Path

import msgspec
import trio

from sessionmgr.process.command import Command
from sessionmgr.process.launcher_factory import LauncherKind, open_launcher
from sessionmgr.process.linux.launcher import SpawnerLauncher
from sessionmgr.process.linux.tree import ReaperTree

SHAPES = str(Path(__file__).with_name("tree_shapes_program.py"))


def command(notes: str, shapes: str) -> Command:
    return Command(
        argv=(sys.executable, "-I", "-S", SHAPES, notes, *shapes.split(",")),
        cwd="/",
        env={"PATH": os.environ["PATH"]},
    )


def report(**what: object) -> None:
    print(json.dumps(what), flush=True)


async def spawn_for_ever(launcher: SpawnerLauncher, notes: str) -> None:
    while True:
        await launcher.spawn(command(notes, "daemon,plain"))


class CommandLines:
    """Commands, one a line, on standard input."""

    def __init__(self) -> None:
        self._stream = trio.lowlevel.FdStream(os.dup(0))
        self._held = b""

    async def next(self) -> str:
        while b"\n" not in self._held:
            piece = await self._stream.receive_some()
            if not piece:
                return "leave"
            self._held += piece
        line, _, self._held = self._held.partition(b"\n")
        return line.decode()


async def run_commands(launcher: SpawnerLauncher, trees: list[ReaperTree], notes: str) -> None:
    """Read and run commands."""
    lines = CommandLines()
    first = launcher.spawner_pid
    async with trio.open_nursery() as nursery:
        while True:
            match await lines.next():
                case "reports":  # of all trees, when they are over
                    reports = [await tree.wait_empty() for tree in trees]
                    report(reports=msgspec.to_builtins(reports))
                case "successor":  # of the first spawner
                    while launcher.spawner_pid in (0, first):  # noqa: ASYNC110
                        await trio.sleep(0.005)
                    report(spawner=launcher.spawner_pid)
                case "spawner":
                    while not launcher.spawner_pid:  # noqa: ASYNC110
                        await trio.sleep(0.005)
                    report(spawner=launcher.spawner_pid)
                case "kill":
                    for tree in trees:
                        tree.kill()
                case "spawn":
                    trees.append(await launcher.spawn(command(notes, "plain")))
                    report(spawner=launcher.spawner_pid, over=[tree.is_over for tree in trees])
                case "storm":  # spawns without end
                    for _ in range(3):
                        nursery.start_soon(spawn_for_ever, launcher, notes)
                case "fork":  # leaves a copy of itself that holds all its descriptors
                    copy = os.fork()
                    if not copy:
                        hold()
                    report(copy=copy)
                case _:
                    nursery.cancel_scope.cancel()
                    return


def hold() -> None:
    while True:
        os.read(os.pipe()[0], 1)


async def main(*arguments: str) -> None:
    state, notes, *shapes = arguments
    async with open_launcher(state_dir=Path(state), kind=LauncherKind.SPAWNER) as launcher:
        assert isinstance(launcher, SpawnerLauncher)
        trees = [await launcher.spawn(command(notes, each)) for each in shapes]
        report(
            pid=os.getpid(),
            launcher=launcher.number,
            spawner=launcher.spawner_pid,
            reapers=[tree.reaper[0] for tree in trees],
            boot=msgspec.to_builtins(launcher.boot),
        )
        await run_commands(launcher, trees, notes)


if __name__ == "__main__":
    trio.run(main, *sys.argv[1:])
