"""Goals: figures, what they are compared with, bounds and verdicts."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import median
from typing import Final, Protocol, TypeAlias

Samples: TypeAlias = dict["Figure", float]
"""The measurements of one round."""


@dataclass(frozen=True, slots=True)
class Figure:
    """The name of one number that a contestant measures."""

    contestant: str
    key: str

    def __str__(self) -> str:
        return f"{self.contestant}/{self.key}"


def figure(text: str) -> Figure:
    """Parse the name of a figure, `contestant/key`."""
    contestant, _, key = text.partition("/")
    return Figure(contestant, key)


class Verdict(Enum):
    """The verdict on a goal."""

    HOLDS = "holds"
    BROKEN = "BROKEN"
    NO_BOUND = "for information"
    SMOKE = "ran"
    MISSING = "not measured"
    FAILED = "FAILED"


BAD: Final = frozenset({Verdict.BROKEN, Verdict.FAILED})


@dataclass(frozen=True, slots=True)
class Score:
    """The numbers of a goal: ours, the anchor's, and the one that the bound limits."""

    ours: float
    anchor: float
    ratio: float


class Goal(Protocol):
    """One line of the table."""

    @property
    def id(self) -> str: ...
    @property
    def what(self) -> str: ...
    @property
    def unit(self) -> str: ...
    @property
    def bound(self) -> float | None: ...
    @property
    def ceiling(self) -> float | None: ...
    def figures(self) -> tuple[Figure, ...]: ...
    def score(self, samples: Samples) -> Score: ...


@dataclass(frozen=True, slots=True)
class Ratio:
    """Our figure divided by the sum of the anchors' figures."""

    id: str
    what: str
    ours: Figure
    anchor: tuple[Figure, ...]
    bound: float | None
    ceiling: float | None = None
    unit: str = "µs"

    def figures(self) -> tuple[Figure, ...]:
        """Return the figures to measure."""
        return (self.ours, *self.anchor)

    def score(self, samples: Samples) -> Score:
        """Compare the figures of one round."""
        ours = samples[self.ours]
        anchor = sum(samples[each] for each in self.anchor)
        return Score(ours, anchor, ours / anchor)


@dataclass(frozen=True, slots=True)
class Weight:
    """Our figure alone, with an absolute bound."""

    id: str
    what: str
    ours: Figure
    anchor: float
    bound: float | None = 1.0
    ceiling: float | None = None
    unit: str = "KiB"

    def figures(self) -> tuple[Figure, ...]:
        """Return the figures to measure."""
        return (self.ours,)

    def score(self, samples: Samples) -> Score:
        """Compare the figure of one round with the bound."""
        ours = samples[self.ours]
        return Score(ours, self.anchor, ours / self.anchor)


@dataclass(frozen=True, slots=True)
class Curve:
    """The deviation of our cost per item from a constant over all sizes.

    The anchor is another program's deviation, for comparison; the bound limits ours alone.
    """

    id: str
    what: str
    ours: tuple[Figure, ...]
    anchor: tuple[Figure, ...]
    bound: float | None
    ceiling: float | None = None
    unit: str = "±"

    def figures(self) -> tuple[Figure, ...]:
        """Return the figures to measure."""
        return (*self.ours, *self.anchor)

    def score(self, samples: Samples) -> Score:
        """Return both deviations of one round."""
        ours = deviation([samples[each] for each in self.ours])
        anchor = deviation([samples[each] for each in self.anchor])
        return Score(ours, anchor, ours)


def deviation(costs: Sequence[float]) -> float:
    """Return the least d for which some c has every cost within c ± d·c."""
    low, high = min(costs), max(costs)
    return (high - low) / (high + low)


@dataclass(frozen=True, slots=True)
class GoalResult:
    """A goal and its result over all rounds."""

    goal: Goal
    verdict: Verdict
    score: Score | None = None
    ratios: tuple[float, ...] = ()
    why: str = ""


def judge(goal: Goal, rounds: Sequence[Samples], *, smoke: bool = False) -> GoalResult:
    """Judge whether the median of the rounds' ratios is within the goal's bound."""
    scores = [goal.score(samples) for samples in rounds]
    score = Score(
        ours=median(each.ours for each in scores),
        anchor=median(each.anchor for each in scores),
        ratio=median(each.ratio for each in scores),
    )
    if smoke:
        verdict = Verdict.SMOKE
    elif goal.bound is None:
        verdict = Verdict.NO_BOUND
    elif score.ratio > goal.bound or (goal.ceiling is not None and score.ours > goal.ceiling):
        verdict = Verdict.BROKEN
    else:
        verdict = Verdict.HOLDS
    return GoalResult(goal, verdict, score, tuple(each.ratio for each in scores))


def exit_code(results: Sequence[GoalResult]) -> int:
    """Return 1 if a bound is broken or a contestant failed, else 0."""
    return int(any(each.verdict in BAD for each in results))
