"""The life of a population: start it, use it, stop it; again and again if it is small."""

from collections.abc import Awaitable, Callable
from statistics import median
from typing import Final

from benchmarks.effort import Effort, Figures, Stopwatch, adopt_gc_policy, cpu

SIZES: Final = (1_000, 10_000, 100_000)
WARM: Final = 1_000
LIVES: Final = 20_000
"""How many are born in one process, at least."""


class PopulationTimes:
    """One life's stopwatches: hold them while all start and while all stop."""

    def __init__(self, *, first: bool = False) -> None:
        self.first = first
        """Whether this is the life in which to measure what else there is."""
        self.starting = Stopwatch(cpu)
        self.stopping = Stopwatch(cpu)
        self.others: Figures = {}
        """What else was measured while they lived."""


async def run_population(
    effort: Effort, size: int, once: Callable[[PopulationTimes, int], Awaitable[object]]
) -> Figures:
    """Let populations live under the gc policy; return the µs per start and per stop.

    `once` is given a life and how many there are to be.
    """
    adopt_gc_policy()
    people = effort.population(size)
    await once(PopulationTimes(), min(people, WARM))
    found: dict[str, list[float]] = {}
    for turn in range(effort.repeats(max(LIVES // size, 1))):
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
