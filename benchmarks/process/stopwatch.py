"""Timing of operations that take milliseconds and wait for the scheduler: median of laps."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from statistics import median


class Laps:
    """Wall times in ms of each lap."""

    def __init__(self) -> None:
        self._taken: list[float] = []

    @contextmanager
    def lap(self) -> Generator[None]:
        """Time one lap."""
        begin = time.perf_counter()
        yield
        self._taken.append((time.perf_counter() - begin) * 1000)

    @property
    def median(self) -> float:
        """The median, which other load moves less than the mean."""
        return median(self._taken)
