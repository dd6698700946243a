"""Random scripts of simulated providers, and how each ends without interference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.model import FailureKind
from sessionmgr.testing.script import (
    Alive,
    Ask,
    Crash,
    CrashAdapter,
    Deaf,
    Error,
    Fail,
    Finish,
    Flood,
    Hang,
    Hear,
    Leave,
    RateLimited,
    Repeat,
    Say,
    Script,
    Step,
    Think,
    Together,
    Tool,
    TurnEnd,
    Use,
    Wait,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulation.rng import SeededRandom

FLOOD: Final = 40
"""Number of deltas in a small flood; the size of each is what matters."""


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """A script, and its expected outcome without interference."""

    kind: str
    script: Script
    ends: frozenset[str]
    """The statuses with which it may end by itself."""
    asks: bool = False
    deaf_for: float = 0.0
    """Maximum time for which it ignores a cancellation."""
    crashes: bool = False
    """Whether it may crash, by itself or when interrupted."""
    says: str | None = None
    """Text of its result."""
    tokens: int = 0


def make_workload(dice: SeededRandom, name: str, *, frail: bool) -> Workload:
    """Make the script of one prompt; only a `frail` provider gets scripts that crash it."""
    kinds = [*_KINDS, *_FRAIL] if frail else _KINDS
    return dice.one_of(kinds)(dice, name)


# --- steps on the way ----------------------------------------------------------------------------


def _talk(dice: SeededRandom, name: str, longest: float = 4.0) -> list[Step]:
    return [_step(dice, f"{name}.{place}", longest) for place in range(dice.randrange(4))]


def _step(dice: SeededRandom, name: str, longest: float) -> Step:
    match dice.randrange(8):
        case 0 | 1:
            return Say(text=name, deltas=dice.randrange(4), pause=dice.moment(longest / 4))
        case 2:
            return Think(text=name, deltas=dice.randrange(3))
        case 3 | 4:
            return Tool(
                name=dice.choice(["Bash", "Edit", "Read"]),
                input={"command": name},
                output="done",
                prints=("a", "b")[: dice.randrange(3)],
                fails=dice.once_in(3),
                takes=dice.moment(longest),
            )
        case 5:
            return Wait(seconds=dice.moment(longest))
        case 6:
            return Error(message=name, severity="warning")
        case _:
            return Alive(every=dice.moment(longest), times=dice.randrange(3))


def _uses(dice: SeededRandom) -> tuple[list[Step], int]:
    used = [
        Use(
            input=dice.randrange(100),
            output=dice.randrange(100),
            cached_input=dice.randrange(50),
            usd=dice.choice([None, 0.001, 0.25]),
        )
        for _ in range(dice.randrange(3))
    ]
    return [*used], sum(each.input + each.output for each in used)


def _how(dice: SeededRandom, steps: list[Step], **how: object) -> Script:
    given = {
        "interrupt": dice.one_of([("end", 6.0), ("done", 2.0), ("ignore", 2.0), ("hang", 1.0)]),
        "unwinds": dice.choice([0.0, 0.0, 0.5, 3.0]),
        "append": dice.one_of(
            [
                ("accept", 5.0),
                ("refuse", 2.0),
                ("slow", 1.0),
                ("hang", 1.0),
                ("lost", 1.5),
                ("crash", 1.0),
            ]
        ),
        "starts": not dice.once_in(20),
    }
    return msgspec.convert({"steps": tuple(steps), **given, **how}, Script)


# --- the kinds -----------------------------------------------------------------------------------


def _chat(dice: SeededRandom, name: str) -> Workload:
    used, tokens = _uses(dice)
    last = f"{name} is done"
    steps = [*_talk(dice, name), *used, *_talk(dice, name + "b"), Say(text=last)]
    return Workload(
        kind="chat",
        script=_how(dice, steps),
        ends=frozenset({"completed"}),
        says=last,
        tokens=tokens,
    )


def _asking(dice: SeededRandom, name: str) -> Workload:
    def question(number: int) -> Ask:
        return Ask(
            tool="Bash",
            input={"command": name},
            output="done",
            id=f"apr_{name}_{number}",
            withdraw_after=dice.choice([None, None, dice.moment(10)]),
        )

    asked = [question(number) for number in range(dice.randrange(1, 4))]
    steps: list[Step] = [*_talk(dice, name), Wait(seconds=dice.moment(15))]
    if dice.once_in(2):
        steps.append(Together(parts=tuple((each,) for each in asked)))
    else:
        steps += asked
    return Workload(
        kind="asking", script=_how(dice, steps), ends=frozenset({"completed"}), asks=True
    )


def _flood(dice: SeededRandom, name: str) -> Workload:
    flood = Flood(events=dice.randrange(FLOOD), size=dice.choice([10, 100, 2000]))
    part: tuple[Step, ...] = (flood, Wait(seconds=dice.moment(1)), flood)
    parts = (part,) * dice.randrange(1, 3)
    return Workload(
        kind="flood", script=_how(dice, [Together(parts=parts)]), ends=frozenset({"completed"})
    )


def _hang(dice: SeededRandom, name: str) -> Workload:
    steps = [*_talk(dice, name), Hang()]
    return Workload(kind="hang", script=_how(dice, steps), ends=frozenset({"timed_out"}))


def _mute(dice: SeededRandom, name: str) -> Workload:
    script = _how(dice, [Hang()], starts=False)
    return Workload(kind="mute", script=script, ends=frozenset({"timed_out"}))


def _deaf(dice: SeededRandom, name: str) -> Workload:
    longest = dice.choice([0.5, 3.0, 9.0, 25.0])
    steps = [*_talk(dice, name), Deaf(seconds=longest), Say(text=name)]
    return Workload(
        kind="deaf", script=_how(dice, steps), ends=frozenset({"completed"}), deaf_for=longest
    )


def _crash(dice: SeededRandom, name: str) -> Workload:
    steps = [*_talk(dice, name), Crash(message=name, depth=dice.randrange(3))]
    script = _how(dice, steps)
    return Workload(kind="crash", script=script, ends=frozenset({"failed"}), crashes=True)


def _rude(dice: SeededRandom, name: str) -> Workload:
    """Crash when interrupted."""
    steps = [*_talk(dice, name), Wait(seconds=dice.moment(25))]
    script = _how(dice, steps, interrupt="crash", starts=True)
    return Workload(kind="rude", script=script, ends=frozenset({"completed"}), crashes=True)


def _silent(dice: SeededRandom, name: str) -> Workload:
    steps = [*_talk(dice, name), Leave()]
    return Workload(
        kind="silent", script=_how(dice, steps), ends=frozenset({"failed"}), crashes=True
    )


def _failing(dice: SeededRandom, name: str) -> Workload:
    used, tokens = _uses(dice)
    kind = dice.choice([FailureKind.PROVIDER_ERROR, FailureKind.OVERLOADED, FailureKind.REFUSED])
    steps = [*_talk(dice, name), *used, Fail(kind=kind, message=name)]
    return Workload(
        kind="failing", script=_how(dice, steps), ends=frozenset({"failed"}), tokens=tokens
    )


def _limited(dice: SeededRandom, name: str) -> Workload:
    steps = [*_talk(dice, name), RateLimited()]
    return Workload(kind="limited", script=_how(dice, steps), ends=frozenset({"rate_limited"}))


def _hearing(dice: SeededRandom, name: str) -> Workload:
    steps = [*_talk(dice, name), Hear(), Say(text=name)]
    script = _how(dice, steps, append=dice.choice(["accept", "slow", "refuse"]))
    return Workload(kind="hearing", script=script, ends=frozenset({"completed", "timed_out"}))


def _tidy(dice: SeededRandom, name: str) -> Workload:
    """Emit the end, then continue for a while or forever, or emit another end."""
    after: list[Step] = dice.choice(
        [
            [Wait(seconds=dice.moment(8))],
            [Hang()],
            [Say(text="late"), Use(output=1)],
            [Fail()],
            [Crash()],
        ]
    )
    steps = [*_talk(dice, name), Finish(), *after]
    return Workload(
        kind="tidy", script=_how(dice, steps), ends=frozenset({"completed"}), crashes=True
    )


def _turns(dice: SeededRandom, name: str) -> Workload:
    turn: tuple[Step, ...] = (
        Say(text=name),
        TurnEnd(open_tasks=dice.randrange(2)),
        Wait(seconds=dice.moment(5)),
    )
    steps: list[Step] = [Repeat(steps=turn, times=dice.randrange(1, 4))]
    return Workload(kind="turns", script=_how(dice, steps), ends=frozenset({"completed"}))


def _costly(dice: SeededRandom, name: str) -> Workload:
    """Use more than the budget that simulated callers set."""
    use = Use(input=900, usd=0.5)
    steps: list[Step] = [use, Wait(seconds=dice.moment(3)), use, Wait(seconds=20), Say(text=name)]
    return Workload(
        kind="costly", script=_how(dice, steps), ends=frozenset({"completed", "failed"})
    )


def _bomb(dice: SeededRandom, name: str) -> Workload:
    """Crash the provider's adapter, once or until its supervisor stops."""
    again: tuple[Step, ...] = (CrashAdapter(), Wait(seconds=dice.choice([0.0, 0.0, 0.2])))
    steps: list[Step] = [*_talk(dice, name), Repeat(steps=again, times=dice.choice([1, 1, 6]))]
    return Workload(
        kind="bomb",
        script=_how(dice, [*steps, Wait(seconds=1)]),
        ends=frozenset({"failed", "completed"}),
        crashes=True,
    )


_KINDS: Final[list[tuple[Callable[[SeededRandom, str], Workload], float]]] = [
    (_chat, 8),
    (_asking, 4),
    (_flood, 1),
    (_hang, 2),
    (_mute, 0.5),
    (_deaf, 1.5),
    (_crash, 1.5),
    (_rude, 0.7),
    (_silent, 0.7),
    (_failing, 1.5),
    (_limited, 1),
    (_hearing, 1),
    (_tidy, 1.5),
    (_turns, 1.5),
    (_costly, 0.7),
]
_FRAIL: Final[list[tuple[Callable[[SeededRandom, str], Workload], float]]] = [(_bomb, 2.5)]
