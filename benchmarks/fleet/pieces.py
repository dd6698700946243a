"""Sources of pieces and their schedule, the same for all contestants."""

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from statistics import median, quantiles
from typing import Final

import trio

from benchmarks.effort import Effort, Figures, Stopwatch, cpu

EVERY: Final = 0.02
"""Seconds between two pieces of one session."""
PIECES: Final = 500
"""Pieces per session: ten seconds."""


@dataclass(slots=True)
class BenchFleet:
    """So many sessions, their sources, and the pieces that their subscribers received."""

    sessions: int
    pieces: int
    go: trio.Event = field(default_factory=trio.Event)
    over: trio.Event = field(default_factory=trio.Event)
    watch: Stopwatch = field(default_factory=lambda: Stopwatch(cpu))
    late: list[float] = field(default_factory=list[float])
    _ready: int = 0
    _begin: float = 0.0

    def ready(self) -> None:
        """Count a session that waits for its first piece; start the fleet with the last one."""
        self._ready += 1
        if self._ready == self.sessions:
            self._begin = trio.current_time()
            self.watch.start()
            self.go.set()

    async def source(
        self,
        number: int,
        tell: Callable[[str], None],
        room: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Pass the pieces of one session to `tell`, each with the time at which it is sent.

        If `room` is given, the source awaits it after each piece.
        """
        await self.go.wait()
        first = self._begin + EVERY * (1 + number / self.sessions)
        for each in range(self.pieces):
            await trio.sleep_until(first + each * EVERY)
            tell(str(time.perf_counter_ns()))
            if room is not None:
                await room()
        await self.over.wait()

    def receive(self, piece: str) -> None:
        """Count a received piece; end the fleet with the last one."""
        self.late.append((time.perf_counter_ns() - int(piece)) / 1e6)
        if len(self.late) == self.sessions * self.pieces:
            self.watch.stop()
            self.over.set()

    def figures(self) -> Figures:
        """Return CPU in µs per piece, and the delays in ms."""
        return {"event": self.watch.micros / len(self.late), **lateness(self.late)}


def lateness(late: Sequence[float]) -> Figures:
    """Return the median and the 99th percentile."""
    return {"p50": median(late), "p99": quantiles(late, n=100)[98]}


def fleet(effort: Effort, sessions: int) -> BenchFleet:
    """Return a fleet of that size, or a small short one for a smoke run."""
    return BenchFleet(effort.population(sessions) if sessions > 1 else 1, effort.operations(PIECES))
