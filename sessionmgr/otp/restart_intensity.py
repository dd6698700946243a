"""Restart intensity: how often a supervisor may restart its children."""

from __future__ import annotations

from collections import deque


class RestartWindow:
    """Counter that allows `max_restarts` in any window of `max_seconds`, both ends included."""

    def __init__(self, max_restarts: int, max_seconds: float) -> None:
        self.max_restarts = max_restarts
        self.max_seconds = max_seconds
        self._times: deque[float] = deque()

    def record(self, now: float) -> bool:
        """Record a restart at `now` and return whether it is within the limit."""
        self._times.append(now)
        return self.count(now) <= self.max_restarts

    def count(self, now: float) -> int:
        """Return the number of restarts in the window that ends at `now`."""
        while self._times and self._times[0] < now - self.max_seconds:
            self._times.popleft()
        return len(self._times)


def check_limits(max_restarts: int, max_seconds: float) -> tuple[int, float]:
    """Validate the limits.

    Raises:
        ValueError: A limit is invalid; the error names it.
    """
    if max_restarts < 0:
        raise ValueError(f"max_restarts={max_restarts}: must be at least 0")
    if not max_seconds > 0:
        raise ValueError(f"max_seconds={max_seconds}: must be more than 0")
    return max_restarts, max_seconds
