"""Costs of a job in a batch, from the opening of the manager to the summary."""

import gc
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import trio

from benchmarks.batch.xargs import AT_ONCE, COMMAND, JOBS
from benchmarks.effort import Effort, Figures, Stopwatch, cpu, rss_kib, wall
from sessionmgr import Job, Manager, PermissionMode, open_manager, run_batch
from sessionmgr.testing.scripted_provider import scripted

SCRIPTED: Final = 2_000
WARM: Final = 1_000
"""Number of jobs before the first measurement of memory."""
MEASURED: Final = 9_000


def commands(effort: Effort) -> Figures:
    """Run a trivial command many times, as `xargs` does."""
    count = effort.population(JOBS)
    jobs = [
        Job(id=str(n), provider="shell", prompt=COMMAND, permission_mode=PermissionMode.FULL_AUTO)
        for n in range(count)
    ]
    return trio.run(_run_jobs, jobs)


def answers(effort: Effort) -> Figures:
    """Run jobs that the scripted provider answers at once."""
    count = effort.population(SCRIPTED)
    return trio.run(
        _run_jobs, [Job(id=str(n), provider="actor", prompt="hi") for n in range(count)]
    )


async def _run_jobs(jobs: list[Job]) -> Figures:
    watch, work = Stopwatch(wall), Stopwatch(cpu)
    with tempfile.TemporaryDirectory() as directory, watch, work:
        place = Path(directory)
        async with (
            open_manager(
                store=place / "store.db", adapters={"actor": scripted("actor")}
            ) as manager,
            run_batch(manager, jobs, concurrency=AT_ONCE, out=place / "out") as batch,
        ):
            summary = await batch.wait()
    assert summary.all_completed
    each = watch.micros / len(jobs)
    return {"job": each, "cpu": work.micros / len(jobs), "millisecond": 1000.0}


def memory(effort: Effort) -> Figures:
    """Measure the memory that a finished job leaves behind."""
    return trio.run(_measure_memory, effort.population(MEASURED))


async def _measure_memory(count: int) -> Figures:
    actor = scripted("actor")
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        async with open_manager(store=place / "store.db", adapters={"actor": actor}) as manager:
            await _run_all(manager, WARM, place / "warm")
            actor.log.clear()
            gc.collect()
            before = rss_kib()
            await _run_all(manager, count, place / "out")
            actor.log.clear()  # the provider's own memory, for tests
            gc.collect()
            return {"kib": (rss_kib() - before) / count}


async def _run_all(manager: Manager, count: int, out: Path) -> None:
    async with run_batch(manager, _jobs(count), concurrency=AT_ONCE, out=out) as batch:
        await batch.wait()


def _jobs(count: int) -> Iterator[Job]:
    for n in range(count):
        yield Job(id=str(n), provider="actor", prompt="hi")
