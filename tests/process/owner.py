"""A program that owns trees, for tests to kill: `python -m tests.process.owner STATE NOTES SHAPES…`.

Each SHAPES is a tree, its shapes joined by commas. When all run it prints one line of JSON, and
does what it is told by lines on its standard input.
"""

import json
import os
import sys
from pathlib import Path

import trio

from sessionmgr.process.command import Command
from sessionmgr.process.guarded import GuardedTree
from sessionmgr.process.opening import Kind, open_launcher
from sessionmgr.process.warded import WardedLauncher

SHAPES = str(Path(__file__).with_name("shapes.py"))


def command(notes: str, shapes: str) -> Command:
    return Command(
        argv=(sys.executable, "-I", "-S", SHAPES, notes, *shapes.split(",")),
        cwd="/",
        env={"PATH": os.environ["PATH"]},
    )


def say(**what: object) -> None:
    print(json.dumps(what), flush=True)


async def spawn_for_ever(launcher: WardedLauncher, notes: str) -> None:
    while True:
        await launcher.spawn(command(notes, "daemon,plain"))


async def obey(launcher: WardedLauncher, trees: list[GuardedTree], notes: str) -> None:
    """Read orders: `facts`, `spawn`, `storm`, `leave`."""
    orders = trio.lowlevel.FdStream(os.dup(0))
    async with trio.open_nursery() as nursery:
        async for order in orders:
            match order.decode().strip():
                case "facts":
                    for tree in trees:
                        facts = await tree.wait_empty()
                        say(emptied=facts.emptied.value, ending=facts.ending.value)
                case "spawn":
                    trees.append(await launcher.spawn(command(notes, "plain")))
                    say(warden=launcher.warden, alive=[tree.is_over for tree in trees])
                case "storm":
                    for _ in range(4):
                        nursery.start_soon(spawn_for_ever, launcher, notes)
                case _:
                    nursery.cancel_scope.cancel()


async def main(state: str, notes: str, *shapes: str) -> None:
    async with open_launcher(state_dir=Path(state), kind=Kind.WARDED) as launcher:
        assert isinstance(launcher, WardedLauncher)
        trees = [await launcher.spawn(command(notes, each)) for each in shapes]
        say(
            launcher=launcher.number,
            warden=launcher.warden,
            guards=[tree.guard[0] for tree in trees],
            boot=[len(launcher.boot.killed), len(launcher.boot.dead)],
        )
        await obey(launcher, trees, notes)


if __name__ == "__main__":
    trio.run(main, *sys.argv[1:])
