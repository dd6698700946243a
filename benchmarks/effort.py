"""How much a contestant is asked to do, and the clocks it is timed with.

Runs in every contestant's process, on other interpreters too, so it needs
nothing but the standard library.
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
    """Adds up what the clock shows while it is held: `with watch:`."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.micros = 0.0
        self._begin = 0.0

    def start(self) -> None:
        """Begin to count."""
        self._begin = self.clock()

    def stop(self) -> None:
        """Add what has passed."""
        self.micros += (self.clock() - self._begin) * 1e6

    def __enter__(self) -> None:
        self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


@dataclass(frozen=True, slots=True)
class Effort:
    """How much to do: what a figure needs, or the least that shows that it works."""

    smoke: bool = False

    def operations(self, wanted: int) -> int:
        """Return how many operations one block has."""
        return max(wanted // 200, 10) if self.smoke else wanted

    def population(self, wanted: int) -> int:
        """Return how many actors or tasks there are to be."""
        return max(wanted // 100, 10) if self.smoke else wanted

    def repeats(self, wanted: int) -> int:
        """Return how often a figure is taken in one process."""
        return 1 if self.smoke else wanted

    async def time(
        self, run: Callable[[int], Awaitable[object]], operations: int, clock: Clock = cpu
    ) -> float:
        """Run blocks of operations; return the median µs per operation, or by wall the least."""

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
        """Like `time`, but only what `run` does while it holds the stopwatch counts."""
        n = self.operations(operations)
        await run(Stopwatch(clock), max(n // 10, 1))  # warm
        costs: list[float] = []
        for _ in range(self.repeats(BLOCKS)):
            watch = Stopwatch(clock)
            await run(watch, n)
            costs.append(watch.micros / n)
        # Whatever else runs on the machine can only add to what the wall shows.
        return min(costs) if clock is wall else median(costs)


def adopt_gc_policy() -> None:
    """Set the collector as an application with a large population would.

    Most growth beyond the linear is the collector walking live tasks; its
    settings belong to the application, here to the benchmark, and hold for
    every contestant of a population alike.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)


def rss_kib() -> float:
    """Return this process's resident memory in KiB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return float(line.split()[1])
    raise OSError("/proc/self/status has no VmRSS")
