"""Scripts of events at a supervisor and its children, as plain data, and strategies for them.

A plan, or an op, is decoded from one number: drawing is quick, and a number that shrinks
makes what it stands for simpler, since the plainest choice always comes first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeVar

from hypothesis import strategies as st

from sessionmgr.otp import Backoff, Crashed, ExitReason, Killed, NoProc, Normal, Shutdown

T = TypeVar("T")

Kind = Literal["function", "started", "actor", "polite", "supervisor"]
"""A function; one with `task_status`; an actor; an actor with `terminate`; and a supervisor."""
Strategy = Literal["one_for_one", "one_for_all", "rest_for_one"]
AutoShutdown = Literal["never", "any_significant", "all_significant"]
Restart = Literal["permanent", "transient", "temporary"]
Verb = Literal["start", "terminate", "restart", "delete"]
Ending = Literal["leave", "raise", "interrupt", "cancel"]

STRATEGIES: Final[Sequence[Strategy]] = ("one_for_one", "one_for_all", "rest_for_one")
AUTO_SHUTDOWNS: Final[Sequence[AutoShutdown]] = (
    *("never", "never"),
    *("any_significant", "all_significant"),
)
RESTARTS: Final[Sequence[Restart]] = ("permanent", "transient", "permanent", "temporary")
LEAVES: Final[Sequence[Kind]] = ("function", "polite", "actor", "started")
KINDS: Final[Sequence[Kind]] = (*LEAVES, "polite", "supervisor")
ENDINGS: Final[Sequence[Ending]] = ("leave", "raise", "cancel", "interrupt")
VERBS: Final[Sequence[Verb]] = ("start", "terminate", "restart", "delete")


class ScriptedCrashError(Exception):
    """A child crashed, as planned."""


class StartCrashError(Exception):
    """A child did not come up, as its plan says."""


class TerminateCrashError(Exception):
    """A `terminate` failed, as its plan says."""


ORDERED: Final[Exception] = RuntimeError("told to stop with this")

REASONS: Final[dict[str, ExitReason]] = {
    "normal": Normal(),
    "shutdown": Shutdown(),
    "detail": Shutdown("a word"),
    "killed": Killed(),
    "crashed": Crashed(ORDERED),
    "noproc": NoProc(),
}

# An end comes from within (crash, finish, raise Stop(...)) or from outside (stop, kill).
FROM_OUTSIDE: Final = ("kill", *(f"stop {word}" for word in REASONS))
FROM_WITHIN: Final = ("crash", "finish", *(f"raise {word}" for word in REASONS))
ENDS: Final = ("crash", "finish", "crash", *FROM_OUTSIDE, "crash", *FROM_WITHIN)

Pause = float | Literal["on", "tick", "settle"]
"""After an op: go on at once, or after one checkpoint, or when nothing moves, or later."""


@dataclass(frozen=True, slots=True)
class ChildPlan:
    """Plan of one child: its behaviour, and its restart options."""

    kind: Kind = "function"
    restart: Restart = "permanent"
    shutdown: float | Literal["brutal_kill"] = 5.0
    significant: bool = False
    init: float = 0.0
    failing: tuple[int, ...] = ()
    """Those of its incarnations, counted from 0, whose start fails."""
    farewell: float = 0.0
    """How long its clean-up takes."""
    sour: bool = False
    """Whether its `terminate` fails at last."""
    backoff: Backoff | None = None
    within: SupervisorOptions | None = None
    """What a supervisor is made of."""

    @property
    def patience(self) -> float:
        """For how long a stop waits."""
        return 0.0 if self.shutdown == "brutal_kill" else self.shutdown


@dataclass(frozen=True, slots=True)
class SupervisorOptions:
    """A supervisor and its first children."""

    plans: tuple[ChildPlan, ...]
    strategy: Strategy = "one_for_one"
    max_restarts: int = 3
    max_seconds: float = 5.0
    auto_shutdown: AutoShutdown = "never"


@dataclass(frozen=True, slots=True)
class EndChildren:
    """Let several children end in the same moment."""

    who: int
    """One bit for each living child; -1 is all of them."""
    how: str
    then: Pause


@dataclass(frozen=True, slots=True)
class AskSupervisor:
    """Make a request to the supervisor, and perhaps not wait for the answer."""

    verb: Verb
    who: int
    plan: ChildPlan
    withdraw: bool
    then: Pause


@dataclass(frozen=True, slots=True)
class SupervisorScript:
    """One example."""

    options: SupervisorOptions
    ops: tuple[EndChildren | AskSupervisor, ...]
    ending: Ending
    rest: bool
    """Whether everything has come to rest before the end."""


class ChoiceDigits:
    """A number as a row of choices."""

    def __init__(self, number: int) -> None:
        self._rest = number

    def pick(self, choices: Sequence[T]) -> T:
        """Use up as much of the number as says which of the choices."""
        self._rest, digit = divmod(self._rest, len(choices))
        return choices[digit]


def leaf(digits: ChoiceDigits, kinds: Sequence[Kind] = LEAVES) -> ChildPlan:
    """Decode a child."""
    kind = digits.pick(kinds)
    restart = digits.pick(RESTARTS)
    starts = kind != "function"
    return ChildPlan(
        kind=kind,
        restart=restart,
        failing=digits.pick(((), (), (), (1,), (1, 2), (0,))) if starts else (),
        farewell=digits.pick((0.0, 0.0, 1.0, 8.0)),
        shutdown=digits.pick((5.0, 5.0, 0.5, "brutal_kill", math.inf)),
        init=digits.pick((0.0, 0.0, 0.5)) if starts else 0.0,
        backoff=digits.pick((None, None, None, Backoff(0.5, 1.0))),
        sour=digits.pick((False, False, True)) and kind == "polite",
        significant=digits.pick((False, True)) and restart != "permanent",
    )


def plan(number: int) -> ChildPlan:
    """Decode a child that may be a supervisor."""
    digits = ChoiceDigits(number)
    child = leaf(digits, KINDS)
    if child.kind != "supervisor":
        return child
    digits = ChoiceDigits(number // len(KINDS))
    small = tuple(
        ChildPlan(
            kind=digits.pick(("polite", "function", "actor", "started")),
            restart=digits.pick(("permanent", "transient")),
            farewell=digits.pick((0.0, 1.0)),
        )
        for _ in range(digits.pick((1, 2, 2, 0)))
    )
    within = SupervisorOptions(
        plans=small,
        strategy=digits.pick(STRATEGIES),
        max_restarts=digits.pick((1, 0, 3)),
    )
    return ChildPlan(
        kind="supervisor",
        restart=child.restart,
        shutdown=digits.pick((math.inf, math.inf, 0.5, "brutal_kill")),
        significant=child.significant,
        within=within,
    )


PAUSES: Final[Sequence[Pause]] = ("settle", "on", "tick", 0.5, 1.0, "settle", 4.0)


def op(number: int) -> EndChildren | AskSupervisor:
    """Decode an op."""
    digits = ChoiceDigits(number)
    then = digits.pick(PAUSES)
    if digits.pick((False, False, True)):
        return AskSupervisor(
            verb=digits.pick(VERBS),
            who=digits.pick(range(6)),
            withdraw=digits.pick((False, False, True)),
            plan=leaf(digits),
            then=then,
        )
    return EndChildren(
        who=digits.pick((1, 2, 4, 3, -1, 8, 5, 7, 14)), how=digits.pick(ENDS), then=then
    )


def dynamically(op: EndChildren | AskSupervisor) -> EndChildren | AskSupervisor:
    """Give what comes closest, of what a dynamic supervisor can be asked for."""
    if isinstance(op, AskSupervisor):
        return replace(op, verb="start" if op.verb in {"start", "restart"} else "terminate")
    return op


def insignificant(plan: ChildPlan) -> ChildPlan:
    """Give the same child for a supervisor whose auto_shutdown is `never`."""
    return replace(plan, significant=False)


@st.composite
def scripts(draw: st.DrawFn, *, dynamic: bool = False) -> SupervisorScript:
    """Draw an example."""
    # Below 2**24 hypothesis draws evenly; the seed lets trio's schedule be searched too.
    number = st.integers(0, 2**24 - 1)
    draw(st.random_module())
    plans = [plan(n) for n in draw(st.lists(number, min_size=1, max_size=5))]
    ops = [op(n) for n in draw(st.lists(number, max_size=12))]
    digits = ChoiceDigits(draw(number))
    ending = digits.pick(ENDINGS)
    rest = digits.pick((True, False))
    options = SupervisorOptions(
        plans=(),
        strategy=digits.pick(STRATEGIES),
        max_restarts=digits.pick((3, 1, 0, 2, 8)),
        max_seconds=digits.pick((5.0, 1.0, 0.5)),
        auto_shutdown="never" if dynamic else digits.pick(AUTO_SHUTDOWNS),
    )
    if dynamic:
        plans = [replace(p, kind="actor", within=None) if p.within else p for p in plans]
        ops = [dynamically(op) for op in ops]
    if options.auto_shutdown == "never":
        plans = [insignificant(plan) for plan in plans]
        ops = [
            replace(o, plan=insignificant(o.plan)) if isinstance(o, AskSupervisor) else o
            for o in ops
        ]
    return SupervisorScript(replace(options, plans=tuple(plans)), tuple(ops), ending, rest)
