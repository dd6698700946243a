"""The amount of work of a contestant, and the clocks that time it.

It runs in every contestant's process, on other interpreters too, and therefore needs only the
standard library.
"""

import gc
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final, TypeAlias

Clock: TypeAlias = Callable[[], float]
Figures: TypeAlias = dict[str, float]

cpu: Final[Clock] = time.process_time
wall: Final[Clock] = time.perf_counter

BLOCKS: Final = 5
GC_THRESHOLDS: Final = (50_000, 20, 20)
GC_POLICY: Final = f"gc.freeze() after boot, gc.set_threshold{GC_THRESHOLDS}"


class Stopwatch:
    """Sums the time while it is held: `with watch:`."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.micros = 0.0
        self._begin = 0.0

    def start(self) -> None:
        """Start the clock."""
        self._begin = self.clock()

    def stop(self) -> None:
        """Add the time since `start`."""
        self.micros += (self.clock() - self._begin) * 1e6

    def __enter__(self) -> None:
        self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


@dataclass(frozen=True, slots=True)
class Effort:
    """The amount of work: enough for a figure, or, in a smoke run, the least that works."""

    smoke: bool = False

    def operations(self, wanted: int) -> int:
        """Return the number of operations per block."""
        return max(wanted // 200, 10) if self.smoke else wanted

    def population(self, wanted: int) -> int:
        """Return the number of actors or tasks."""
        return max(wanted // 100, 10) if self.smoke else wanted

    def repeats(self, wanted: int) -> int:
        """Return the number of measurements per process."""
        return 1 if self.smoke else wanted

    async def time(
        self, run: Callable[[int], Awaitable[object]], operations: int, clock: Clock = cpu
    ) -> float:
        """Run blocks of operations; return µs per operation (median, or minimum of wall time)."""

        async def whole(watch: Stopwatch, times: int) -> None:
            with watch:
                await run(times)

        return await self.time_part(whole, operations, clock)

    async def time_part(
        self,
        run: Callable[["Stopwatch", int], Awaitable[object]],
        operations: int,
        clock: Clock = cpu,
    ) -> float:
        """Like `time`, but count only the time while `run` holds the stopwatch."""
        n = self.operations(operations)
        await run(Stopwatch(clock), max(n // 10, 1))  # warm-up
        costs: list[float] = []
        for _ in range(self.repeats(BLOCKS)):
            watch = Stopwatch(clock)
            await run(watch, n)
            costs.append(watch.micros / n)
        # Other load on the machine can only add to wall time, so the minimum is the best estimate.
        return min(costs) if clock is wall else median(costs)


def adopt_gc_policy() -> None:
    """Set the collector as an application with a large population would.

    Most of the superlinear growth is the collector walking live tasks. Its settings belong to the
    application, here to the benchmark, and hold for every contestant of a population alike.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)


def rss_kib() -> float:
    """Return the resident memory of this process in KiB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return float(line.split()[1])
    raise OSError("/proc/self/status has no VmRSS")
