"""How often a supervisor may restart its children."""

from __future__ import annotations

from collections import deque


class RestartWindow:
    """At most `max_restarts` in any window of `max_seconds`, both ends included."""

    def __init__(self, max_restarts: int, max_seconds: float) -> None:
        self.max_restarts = max_restarts
        self.max_seconds = max_seconds
        self._times: deque[float] = deque()

    def record(self, now: float) -> bool:
        """Note a restart at `now` and say whether it is still within the limit."""
        self._times.append(now)
        return self.count(now) <= self.max_restarts

    def count(self, now: float) -> int:
        """Say how many restarts the window that ends at `now` holds."""
        while self._times and self._times[0] < now - self.max_seconds:
            self._times.popleft()
        return len(self._times)


def check_limits(max_restarts: int, max_seconds: float) -> tuple[int, float]:
    """Refuse limits that are none.

    Raises:
        ValueError: and which it is.
    """
    if max_restarts < 0:
        raise ValueError(f"max_restarts={max_restarts}: at least 0")
    if not max_seconds > 0:
        raise ValueError(f"max_seconds={max_seconds}: more than 0")
    return max_restarts, max_seconds
