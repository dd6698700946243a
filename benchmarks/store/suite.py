"""Goals of `sessionmgr.store`."""

from dataclasses import dataclass
from typing import Final

from benchmarks.contestant import Contestant
from benchmarks.goal import Figure, Goal, Ratio, Samples, Score, figure
from benchmarks.suite import Suite


@dataclass(frozen=True, slots=True)
class LimitGoal:
    """A figure with an absolute bound; the anchor is shown for comparison."""

    id: str
    what: str
    ours: Figure
    anchor: Figure
    bound: float | None
    ceiling: float | None = None
    unit: str = "ms"

    def figures(self) -> tuple[Figure, ...]:
        """Return the figures to measure."""
        return (self.ours, self.anchor)

    def score(self, samples: Samples) -> Score:
        """Return the figures of one round."""
        return Score(samples[self.ours], samples[self.anchor], samples[self.ours])


def _ours(name: str) -> Contestant:
    return Contestant(f"store.{name}", f"benchmarks.store.sessionmgr_store:{name}")


def _direct(name: str) -> Contestant:
    return Contestant(f"sqlite.{name}", f"benchmarks.store.plain_sqlite:{name}")


CONTESTANTS: Final = (
    _ours("groups"),
    _direct("groups"),
    _ours("alone"),
    _ours("commits"),
    _ours("stall"),
    _ours("singles"),
    _direct("singles"),
    _ours("pages"),
    _direct("pages"),
    _ours("wake"),
    _ours("wake_across"),
    _ours("redaction"),
)


def _ratio(name: str, what: str, ours: str, anchor: str, bound: float | None) -> Ratio:
    return Ratio(name, what, figure(ours), (figure(anchor),), bound)


GOALS: Final[tuple[Goal, ...]] = (
    # At least three quarters of the throughput means at most four thirds of the cost.
    _ratio(
        "G-D1",
        "store 256 events, 4 tasks ÷ executemany",
        "store.groups/event",
        "sqlite.groups/event",
        4 / 3,
    ),
    _ratio(
        "G-D2", "commit of 256 events, p99 ÷ p50", "store.commits/p99", "store.commits/p50", 3.0
    ),
    LimitGoal(
        "G-D3",
        "p99 of a loop's stall, storing; idle",
        figure("store.stall/busy"),
        figure("store.stall/idle"),
        5.0,
    ),
    _ratio(
        "store-0",
        "the same, 1 task that waits for each",
        "store.alone/event",
        "sqlite.groups/event",
        None,
    ),
    _ratio(
        "store-1",
        "one event, of 64 tasks ÷ one a commit",
        "store.singles/event",
        "sqlite.singles/event",
        None,
    ),
    _ratio(
        "store-2",
        "read an event, pages of 500 ÷ fetchall",
        "store.pages/event",
        "sqlite.pages/event",
        None,
    ),
    _ratio("store-3", "append wakes a waiter, p99 ÷ p50", "store.wake/p99", "store.wake/p50", None),
    LimitGoal(
        "store-4",
        "another process's append wakes, p99; p50",
        figure("store.wake_across/p99"),
        figure("store.wake_across/p50"),
        250.0,
    ),
    _ratio(
        "store-5",
        "redact an event ÷ store it",
        "store.redaction/event",
        "store.groups/event",
        None,
    ),
)

STORE: Final = Suite("store", GOALS, CONTESTANTS)
