"""Timing what takes milliseconds and waits for the scheduler: each time by itself, the median."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from statistics import median


class Laps:
    """The ms by the wall of each lap."""

    def __init__(self) -> None:
        self._taken: list[float] = []

    @contextmanager
    def lap(self) -> Generator[None]:
        """Take the time of one."""
        begin = time.perf_counter()
        yield
        self._taken.append((time.perf_counter() - begin) * 1000)

    @property
    def middle(self) -> float:
        """The median, which a busy neighbour moves less than the mean."""
        return median(self._taken)
