"""One simulation from its seed to its verdict."""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import trio

from sessionmgr.manager import open_manager
from sessionmgr.store import MemoryStore, open_sqlite_store
from sessionmgr.testing.schedule import run_scheduled
from sessionmgr.testing.simulation.batch import BatchSimulation
from sessionmgr.testing.simulation.chance import Dice
from sessionmgr.testing.simulation.listener import listening
from sessionmgr.testing.simulation.patience import watch
from sessionmgr.testing.simulation.room import small_room
from sessionmgr.testing.simulation.shift import Shift
from sessionmgr.testing.simulation.verdict import broken
from sessionmgr.testing.simulation.weather import Weather
from sessionmgr.testing.simulation.weathered import WeatheredStore
from sessionmgr.testing.simulation.world import SESSIONS, Options, World

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from sessionmgr.store import Store
    from sessionmgr.testing.simulation.record import Record

ONE_IN: Final = 8
"""How many seeds there are for each that has its store in a file."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a simulation."""

    options: Options
    broken: tuple[str, ...]
    """What was wrong, one sentence each."""
    events: int
    runs: int
    seconds: float
    """Virtual ones."""
    log: str
    """The sha256 of all event logs: the same whenever the seed is."""

    @property
    def command(self) -> str:
        """What to type to see it again."""
        options = self.options
        return (
            "python -m sessionmgr.testing.simulation"
            f" --seed {options.seed} --sessions {options.sessions}"
        )


def simulate(seed: int, *, sessions: int = SESSIONS) -> Report:
    """Run the simulation that `seed` stands for."""
    options = Options(seed=seed, sessions=sessions)

    async def main() -> Report:
        return await _simulate(options)

    with small_room():
        return run_scheduled(main, seed)


async def _simulate(options: Options) -> Report:
    dice = Dice(options.seed, "world")
    async with _open_store(dice) as store:
        world = World(options, store)
        with listening(world):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(watch)
                await _shifts(world, dice)
                batch = BatchSimulation(world)
                await batch.run()
                nursery.cancel_scope.cancel()
            tasks = _tasks()
            if tasks > 1:
                world.complain(f"{tasks - 1} tasks are left")
            await _clean_up(world)
        return await _report(world, batch.record)


async def _clean_up(world: World) -> None:
    """Have a last manager end, in good weather, what the others have left open."""
    calm = WeatheredStore(world.store, Weather(Dice(world.seed, "calm")), world.record)
    manager = open_manager(
        store=calm, adapters=world.adapters, now=world.now, bits=world.bits, environ={}
    )
    async with manager:
        await trio.lowlevel.checkpoint()
    left = await world.store.leases()
    if left and not any(shift.weather.bad or shift.weather.struck for shift in world.shifts):
        world.complain(f"leases are left: {left}")


async def _shifts(world: World, dice: Dice) -> None:
    left = world.options.sessions
    number = world.options.shifts or dice.randrange(1, 4)
    async with trio.open_nursery() as nursery:
        for n in range(number):
            share = left // (number - n)
            left -= share
            shift = Shift(world, n, share, last=n == number - 1)
            await nursery.start(shift.serve)


@contextlib.asynccontextmanager
async def _open_store(dice: Dice) -> AsyncGenerator[Store, None]:
    if not dice.once_in(ONE_IN):
        yield MemoryStore()
        return
    with tempfile.TemporaryDirectory(prefix="simulation-") as directory:
        path = Path(directory, "store.db")
        async with open_sqlite_store(path, executor="inline", poll=None) as store:
            yield store


def _tasks() -> int:
    """Count the tasks that there are beside trio's own."""
    main = trio.lowlevel.current_task()
    waiting, count = [main], 0
    while waiting:
        task = waiting.pop()
        count += 1
        waiting += [each for nursery in task.child_nurseries for each in nursery.child_tasks]
    return count


async def _report(world: World, of_batch: Record) -> Report:
    found = await broken(world)
    digest = hashlib.sha256()
    events = 0
    logs = [*world.record.sessions.items(), *of_batch.sessions.items()]
    for session_id, rows in logs:
        digest.update(session_id.encode())
        for noted in rows:
            digest.update(noted.row.body)
            events += 1
    return Report(
        options=world.options,
        broken=tuple(found),
        events=events,
        runs=len(world.record.first) + len(of_batch.first),
        seconds=trio.current_time(),
        log=digest.hexdigest(),
    )
