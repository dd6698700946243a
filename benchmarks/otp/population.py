"""Costs of many actors: start, call one of them, stop, memory."""

import gc

import trio

from benchmarks.effort import Effort, Figures, rss_kib
from benchmarks.otp.actor import CountingActor, time_calls
from benchmarks.otp.population_cycle import PopulationTimes, run_population
from benchmarks.otp.supervision import IdleActor
from sessionmgr.otp import DynamicSupervisor, child


def population(effort: Effort, size: int) -> Figures:
    """Start idle actors, call one of them, stop all by leaving the block."""

    async def once(life: PopulationTimes, people: int) -> None:
        gc.collect()
        async with DynamicSupervisor() as crew:
            with life.starting:
                for _ in range(people):
                    await crew.start_child(child(IdleActor))
            if life.first:
                server = await crew.start_child(child(CountingActor))
                life.others = await time_calls(effort, server)
                await crew.terminate_child(server)
            gc.collect()
            life.stopping.start()
        life.stopping.stop()

    return trio.run(run_population, effort, size, once)


def memory(effort: Effort) -> Figures:
    """Measure the memory of 10 000 idle actors."""
    people = effort.population(10_000)

    async def main() -> Figures:
        async with DynamicSupervisor() as crew:
            await crew.start_child(child(IdleActor))
            gc.collect()
            before = rss_kib()
            for _ in range(people):
                await crew.start_child(child(IdleActor))
            gc.collect()
            return {"kib": (rss_kib() - before) / people}

    return trio.run(main)
