"""Life cycle of a population: start, use, stop; small populations repeat it."""

from collections.abc import Awaitable, Callable
from statistics import median
from typing import Final

from benchmarks.effort import Effort, Figures, Stopwatch, adopt_gc_policy, cpu

SIZES: Final = (1_000, 10_000, 100_000)
WARM: Final = 1_000
STARTS: Final = 20_000
"""Minimum number of starts in one process."""


class PopulationTimes:
    """The stopwatches of one cycle: hold them while all start and while all stop."""

    def __init__(self, *, first: bool = False) -> None:
        self.first = first
        """Whether this is the first cycle, in which the other figures are measured."""
        self.starting = Stopwatch(cpu)
        self.stopping = Stopwatch(cpu)
        self.others: Figures = {}
        """The other figures of the cycle."""


async def run_population(
    effort: Effort, size: int, once: Callable[[PopulationTimes, int], Awaitable[object]]
) -> Figures:
    """Run cycles under the gc policy; return the µs per start and per stop.

    `once` receives the stopwatches and the size of the population.
    """
    adopt_gc_policy()
    people = effort.population(size)
    await once(PopulationTimes(), min(people, WARM))
    found: dict[str, list[float]] = {}
    for turn in range(effort.repeats(max(STARTS // size, 1))):
        life = PopulationTimes(first=turn == 0)
        await once(life, people)
        figures = {
            "start": life.starting.micros / people,
            "stop": life.stopping.micros / people,
            **life.others,
        }
        for key, each in figures.items():
            found.setdefault(key, []).append(each)
    return {key: median(each) for key, each in found.items()}
