"""Goals of `sessionmgr.process`."""

from dataclasses import dataclass
from typing import Final

from benchmarks.contestant import Contestant
from benchmarks.goal import Figure, Goal, Ratio, Samples, Score, figure
from benchmarks.store.suite import LimitGoal
from benchmarks.suite import Suite


@dataclass(frozen=True, slots=True)
class ExcessGoal:
    """A goal that limits the difference between our figure and the anchor."""

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
        """Return the figures of one round, and their difference."""
        ours, anchor = samples[self.ours], samples[self.anchor]
        return Score(ours, anchor, ours - anchor)


CONTESTANTS: Final = (
    Contestant("tree.spawn", "benchmarks.process.sessionmgr_trees:spawn"),
    Contestant("trio.spawn", "benchmarks.process.alternatives:spawn"),
    Contestant("popen.spawn", "benchmarks.process.alternatives:popen"),
    Contestant("tree.kill", "benchmarks.process.sessionmgr_trees:kill"),
    Contestant("trio.kill", "benchmarks.process.alternatives:kill"),
    Contestant("tree.child_memory", "benchmarks.process.sessionmgr_trees:memory"),
    Contestant("trio.child_memory", "benchmarks.process.alternatives:memory"),
)


def _ratio(name: str, what: str, ours: str, anchor: str) -> Ratio:
    return Ratio(name, what, figure(ours), (figure(anchor),), None, unit="ms")


def _limit(
    name: str, what: str, key: str, anchor: str, bound: float | None, unit: str
) -> LimitGoal:
    return LimitGoal(
        name, what, figure(f"tree.child_memory/{key}"), figure(anchor), bound, unit=unit
    )


GOALS: Final[tuple[Goal, ...]] = (
    ExcessGoal(
        "G-P1",
        "spawn of a tree, over trio's open_process",
        figure("tree.spawn/one"),
        figure("trio.spawn/one"),
        2.0,
    ),
    _ratio("P1-trio", "the same, as a ratio", "tree.spawn/one", "trio.spawn/one"),
    _ratio("P1-popen", "spawn ÷ Popen with 3 pipes", "tree.spawn/one", "popen.spawn/one"),
    _ratio("P1-many", "spawn, 60 at once, each ÷ trio's", "tree.spawn/many", "trio.spawn/many"),
    _limit(
        "G-M3",
        "our memory per live child; trio's",
        "kib",
        "trio.child_memory/kib",
        12.0,
        unit="KiB",
    ),
    _limit(
        "G-M3", "our descriptors per child; trio's", "fds", "trio.child_memory/fds", 4.0, unit="fds"
    ),
    _limit(
        "M3-guard",
        "private memory of a guard; ours",
        "guard",
        "tree.child_memory/kib",
        None,
        unit="KiB",
    ),
    _ratio("kill", "one, kill to proof ÷ trio's to exit", "tree.kill/lone", "trio.kill/lone"),
    _ratio("kill", "nine in nine sessions ÷ the same", "tree.kill/family", "trio.kill/lone"),
)

PROCESS: Final = Suite(
    name="process",
    goals=GOALS,
    contestants=CONTESTANTS,
    notes=(
        "G-P1: the figure judged is the difference in ms; all by the wall, the median of 300, and",
        "      all contestants rest for 10 ms before each; P1-many is without any rest",
        "G-M3, M3-guard: the figure judged is ours; 200 children that live",
    ),
)
