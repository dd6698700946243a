"""Costs of our store."""

import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import trio

from benchmarks.effort import Effort, Figures, Stopwatch, cpu, wall
from benchmarks.store.store_files import BODY, batch, database_path
from sessionmgr.store import Append, NewSession, SqliteStore, open_sqlite_store
from sessionmgr.store.redaction import Redactor

ROOT = Path(__file__).parents[2]
GROUP = 256
PRODUCERS = 64


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that this share of the values does not exceed."""
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]


async def new_session(store: SqliteStore, session_id: str) -> None:
    """Create a session."""
    await store.create_session(NewSession(session_id=session_id, provider="p", at=1, body=b"{}"))


def groups(effort: Effort) -> Figures:
    """Append batches of 256 events in four tasks; µs of CPU per event, of all threads."""
    return {"event": _groups(effort, 4)}


def alone(effort: Effort) -> Figures:
    """Append batches of 256 events in one task, each after the last one is acknowledged."""
    return {"event": _groups(effort, 1)}


def _groups(effort: Effort, tasks: int) -> float:
    async def main(path: Path) -> float:
        async with open_sqlite_store(path) as store:
            lasts = [0] * tasks
            for n in range(tasks):
                await new_session(store, f"ses_{n}")

            async def produce(batches: list[Append]) -> None:
                for each in batches:
                    await store.append(each)

            async def run(watch: Stopwatch, events: int) -> None:
                batches: list[list[Append]] = []
                for n, last in enumerate(lasts):
                    firsts = range(last + 1, last + events // tasks + 1, GROUP)
                    batches.append([batch(f"ses_{n}", first, GROUP) for first in firsts])
                    lasts[n] = batches[n][-1].rows[-1].seq
                with watch:
                    async with trio.open_nursery() as nursery:
                        for each in batches:
                            nursery.start_soon(produce, each)

            return await effort.time_part(run, GROUP * 200, cpu)

    with database_path() as path:
        return trio.run(main, path)


def commits(effort: Effort) -> Figures:
    """Append batches of 256 events; µs of wall time from the call to the acknowledgement."""

    async def main(path: Path) -> list[float]:
        times: list[float] = []
        async with open_sqlite_store(path) as store:
            await new_session(store, "ses_a")
            for place_ in range(effort.operations(4000)):
                append = batch("ses_a", place_ * GROUP + 1, GROUP)
                begin = wall()
                await store.append(append)
                times.append((wall() - begin) * 1e6)
        return times

    with database_path() as path:
        times = trio.run(main, path)
    return {"p50": percentile(times, 0.5), "p99": percentile(times, 0.99)}


def stall(effort: Effort) -> Figures:
    """Measure the delay of a 1 ms sleep while four tasks store at full speed; in ms."""

    async def tick(late: list[float], ticks: int) -> None:
        for _ in range(ticks):
            due = wall() + 0.001
            await trio.sleep(0.001)
            late.append((wall() - due) * 1e3)

    async def store_on(store: SqliteStore, session_id: str) -> None:
        await new_session(store, session_id)
        first = 1
        while True:
            await store.append(batch(session_id, first, GROUP))
            first += GROUP

    async def main(path: Path) -> Figures:
        idle: list[float] = []
        busy: list[float] = []
        ticks = effort.operations(2000)
        await tick(idle, ticks)
        async with open_sqlite_store(path) as store, trio.open_nursery() as nursery:
            for n in range(4):
                nursery.start_soon(store_on, store, f"ses_{n}")
            await tick(busy, ticks)
            nursery.cancel_scope.cancel()
        return {"idle": percentile(idle, 0.99), "busy": percentile(busy, 0.99)}

    with database_path() as path:
        return trio.run(main, path)


def singles(effort: Effort) -> Figures:
    """Append single events in 64 tasks; µs of CPU per event."""

    async def main(path: Path) -> float:
        async with open_sqlite_store(path) as store:
            lasts = [0] * PRODUCERS
            for n in range(PRODUCERS):
                await new_session(store, f"ses_{n}")

            async def produce(n: int, events: int) -> None:
                for _ in range(events):
                    lasts[n] += 1
                    await store.append(batch(f"ses_{n}", lasts[n], 1))

            async def run(events: int) -> None:
                async with trio.open_nursery() as nursery:
                    for n in range(PRODUCERS):
                        nursery.start_soon(produce, n, max(events // PRODUCERS, 1))

            return await effort.time(run, 64 * 100, cpu)

    with database_path() as path:
        return {"event": trio.run(main, path)}


def pages(effort: Effort) -> Figures:
    """Read a long session in pages of 500; µs of CPU per event."""

    async def main(path: Path) -> float:
        async with open_sqlite_store(path) as store:
            await new_session(store, "ses_a")
            for first in range(1, 20_000, 1000):
                await store.append(batch("ses_a", first, 1000))

            async def run(events: int) -> None:
                after = 0
                for _ in range(0, events, 500):
                    page = await store.events("ses_a", after=after, limit=500)
                    after = page.last if page.more else 0

            return await effort.time(run, 50_000, cpu)

    with database_path() as path:
        return {"event": trio.run(main, path)}


def wake(effort: Effort) -> Figures:
    """Measure from an append's start to the task that waits for it; µs of wall time."""

    async def main(path: Path) -> list[float]:
        times: list[float] = []
        async with open_sqlite_store(path) as store:
            await new_session(store, "ses_a")
            for number in range(1, effort.operations(2000)):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(partial(store.wait, "ses_a", after=number - 1))
                    await trio.sleep(0.0005)
                    begin = wall()
                    nursery.start_soon(store.append, batch("ses_a", number, 1))
                times.append((wall() - begin) * 1e6)
        return times

    with database_path() as path:
        times = trio.run(main, path)
    return {"p50": percentile(times, 0.5), "p99": percentile(times, 0.99)}


def wake_across(effort: Effort) -> Figures:
    """Measure from another process's append to a task that waits here; ms of wall time."""

    async def main(path: Path) -> list[float]:
        woken: list[float] = []
        async with open_sqlite_store(path) as store, trio.open_nursery() as nursery:
            await new_session(store, "ses_a")
            number = effort.operations(100)
            neighbour = await nursery.start(
                partial(
                    trio.run_process,
                    [sys.executable, "-m", "benchmarks.store.other_process", str(path), "ses_a"],
                    cwd=ROOT,
                    stdin=subprocess.PIPE,
                    capture_stdout=True,
                )
            )
            for after in range(number):
                await neighbour.stdin.send_all(b"\n")
                await store.wait("ses_a", after=after)
                woken.append(time.monotonic())
            stored = [float(row.body) for row in (await store.events("ses_a", limit=number)).rows]
            await neighbour.stdin.aclose()
        return [max(late - when, 0) * 1e3 for late, when in zip(woken, stored, strict=True)]

    with database_path() as path:
        late = trio.run(main, path)
    return {"p50": statistics.median(late), "p99": percentile(late, 0.99)}


def redaction(effort: Effort) -> Figures:
    """Redact a record without secrets, with three known secrets; µs of CPU."""
    redact = Redactor([f"secret-{n}-abcdefghijkl" for n in range(3)]).redact

    async def run(events: int) -> None:
        for _ in range(events):
            redact(BODY)

    return {"event": trio.run(effort.time, run, 20_000)}
