"""One simulation, from its seed to its report."""

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
from sessionmgr.testing.seeded_schedule import run_scheduled
from tests.simulation.batch_simulation import BatchSimulation
from tests.simulation.faulty_store import FaultInjectingStore
from tests.simulation.log_monitor import monitoring_log
from tests.simulation.manager_run import ManagerRun
from tests.simulation.rng import SeededRandom
from tests.simulation.small_inbox import small_inbox
from tests.simulation.store_faults import StoreFaults
from tests.simulation.verdict import find_violations
from tests.simulation.watchdog import raise_after_limit
from tests.simulation.world import SESSIONS, SimulatedWorld, SimulationOptions

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from sessionmgr.store import Store
    from tests.simulation.store_record import StoreRecord

ONE_IN: Final = 8
"""One seed in so many has its store in a file."""


class SimulationReport(msgspec.Struct, frozen=True, kw_only=True):
    """Report of a simulation."""

    options: SimulationOptions
    broken: tuple[str, ...]
    """The violations, one sentence each."""
    events: int
    runs: int
    seconds: float
    """Virtual seconds."""
    log: str
    """The sha256 of all event logs: equal for equal seeds."""

    @property
    def command(self) -> str:
        """Command that repeats the simulation."""
        options = self.options
        return f"python -m tests.simulation --seed {options.seed} --sessions {options.sessions}"


def simulate(seed: int, *, sessions: int = SESSIONS) -> SimulationReport:
    """Run the simulation of a seed."""
    options = SimulationOptions(seed=seed, sessions=sessions)

    async def main() -> SimulationReport:
        return await _simulate(options)

    with small_inbox():
        return run_scheduled(main, seed)


async def _simulate(options: SimulationOptions) -> SimulationReport:
    rng = SeededRandom(options.seed, "world")
    async with _open_store(rng) as store:
        world = SimulatedWorld(options, store)
        with monitoring_log(world):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(raise_after_limit)
                await _run_managers(world, rng)
                batch = BatchSimulation(world)
                await batch.run()
                nursery.cancel_scope.cancel()
            tasks = _tasks()
            if tasks > 1:
                world.add_violation(f"{tasks - 1} tasks are left")
            await _clean_up(world)
        return await _report(world, batch.record)


async def _clean_up(world: SimulatedWorld) -> None:
    """Let a last manager, without faults, end everything that the others have left open."""
    faultless = FaultInjectingStore(
        world.store, StoreFaults(SeededRandom(world.seed, "calm")), world.record
    )
    manager = open_manager(
        store=faultless, adapters=world.adapters, now=world.now, bits=world.bits, environ={}
    )
    async with manager:
        await trio.lowlevel.checkpoint()
    left = await world.store.leases()
    if left and not any(
        lifetime.faults.periods or lifetime.faults.injected for lifetime in world.lifetimes
    ):
        world.add_violation(f"leases are left: {left}")


async def _run_managers(world: SimulatedWorld, rng: SeededRandom) -> None:
    left = world.options.sessions
    number = world.options.lifetimes or rng.randrange(1, 4)
    async with trio.open_nursery() as nursery:
        for n in range(number):
            share = left // (number - n)
            left -= share
            lifetime = ManagerRun(world, n, share, last=n == number - 1)
            await nursery.start(lifetime.run)


@contextlib.asynccontextmanager
async def _open_store(rng: SeededRandom) -> AsyncGenerator[Store, None]:
    if not rng.once_in(ONE_IN):
        yield MemoryStore()
        return
    with tempfile.TemporaryDirectory(prefix="simulation-") as directory:
        path = Path(directory, "store.db")
        async with open_sqlite_store(path, executor="inline", poll=None) as store:
            yield store


def _tasks() -> int:
    """Count the tasks beside trio's own."""
    main = trio.lowlevel.current_task()
    waiting, count = [main], 0
    while waiting:
        task = waiting.pop()
        count += 1
        waiting += [each for nursery in task.child_nurseries for each in nursery.child_tasks]
    return count


async def _report(world: SimulatedWorld, of_batch: StoreRecord) -> SimulationReport:
    found = await find_violations(world)
    digest = hashlib.sha256()
    events = 0
    logs = [*world.record.sessions.items(), *of_batch.sessions.items()]
    for session_id, rows in logs:
        digest.update(session_id.encode())
        for noted in rows:
            digest.update(noted.row.body)
            events += 1
    return SimulationReport(
        options=world.options,
        broken=tuple(found),
        events=events,
        runs=len(world.record.first) + len(of_batch.first),
        seconds=trio.current_time(),
        log=digest.hexdigest(),
    )
