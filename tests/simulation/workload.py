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


def make_workload(rng: SeededRandom, name: str, *, frail: bool) -> Workload:
    """Make the script of one prompt; only a `frail` provider gets scripts that crash it."""
    kinds = [*_KINDS, *_FRAIL] if frail else _KINDS
    return rng.one_of(kinds)(rng, name)


# --- steps on the way ----------------------------------------------------------------------------


def _talk(rng: SeededRandom, name: str, longest: float = 4.0) -> list[Step]:
    return [_step(rng, f"{name}.{place}", longest) for place in range(rng.randrange(4))]


def _step(rng: SeededRandom, name: str, longest: float) -> Step:
    match rng.randrange(8):
        case 0 | 1:
            return Say(text=name, deltas=rng.randrange(4), pause=rng.moment(longest / 4))
        case 2:
            return Think(text=name, deltas=rng.randrange(3))
        case 3 | 4:
            return Tool(
                name=rng.choice(["Bash", "Edit", "Read"]),
                input={"command": name},
                output="done",
                prints=("a", "b")[: rng.randrange(3)],
                fails=rng.once_in(3),
                takes=rng.moment(longest),
            )
        case 5:
            return Wait(seconds=rng.moment(longest))
        case 6:
            return Error(message=name, severity="warning")
        case _:
            return Alive(every=rng.moment(longest), times=rng.randrange(3))


def _uses(rng: SeededRandom) -> tuple[list[Step], int]:
    used = [
        Use(
            input=rng.randrange(100),
            output=rng.randrange(100),
            cached_input=rng.randrange(50),
            usd=rng.choice([None, 0.001, 0.25]),
        )
        for _ in range(rng.randrange(3))
    ]
    return [*used], sum(each.input + each.output for each in used)


def _how(rng: SeededRandom, steps: list[Step], **how: object) -> Script:
    given = {
        "interrupt": rng.one_of([("end", 6.0), ("done", 2.0), ("ignore", 2.0), ("hang", 1.0)]),
        "unwinds": rng.choice([0.0, 0.0, 0.5, 3.0]),
        "append": rng.one_of(
            [
                ("accept", 5.0),
                ("refuse", 2.0),
                ("slow", 1.0),
                ("hang", 1.0),
                ("lost", 1.5),
                ("crash", 1.0),
            ]
        ),
        "starts": not rng.once_in(20),
    }
    return msgspec.convert({"steps": tuple(steps), **given, **how}, Script)


# --- the kinds -----------------------------------------------------------------------------------


def _chat(rng: SeededRandom, name: str) -> Workload:
    used, tokens = _uses(rng)
    last = f"{name} is done"
    steps = [*_talk(rng, name), *used, *_talk(rng, name + "b"), Say(text=last)]
    return Workload(
        kind="chat",
        script=_how(rng, steps),
        ends=frozenset({"completed"}),
        says=last,
        tokens=tokens,
    )


def _asking(rng: SeededRandom, name: str) -> Workload:
    def question(number: int) -> Ask:
        return Ask(
            tool="Bash",
            input={"command": name},
            output="done",
            id=f"apr_{name}_{number}",
            withdraw_after=rng.choice([None, None, rng.moment(10)]),
        )

    asked = [question(number) for number in range(rng.randrange(1, 4))]
    steps: list[Step] = [*_talk(rng, name), Wait(seconds=rng.moment(15))]
    if rng.once_in(2):
        steps.append(Together(parts=tuple((each,) for each in asked)))
    else:
        steps += asked
    return Workload(
        kind="asking", script=_how(rng, steps), ends=frozenset({"completed"}), asks=True
    )


def _flood(rng: SeededRandom, name: str) -> Workload:
    flood = Flood(events=rng.randrange(FLOOD), size=rng.choice([10, 100, 2000]))
    part: tuple[Step, ...] = (flood, Wait(seconds=rng.moment(1)), flood)
    parts = (part,) * rng.randrange(1, 3)
    return Workload(
        kind="flood", script=_how(rng, [Together(parts=parts)]), ends=frozenset({"completed"})
    )


def _hang(rng: SeededRandom, name: str) -> Workload:
    steps = [*_talk(rng, name), Hang()]
    return Workload(kind="hang", script=_how(rng, steps), ends=frozenset({"timed_out"}))


def _mute(rng: SeededRandom, name: str) -> Workload:
    script = _how(rng, [Hang()], starts=False)
    return Workload(kind="mute", script=script, ends=frozenset({"timed_out"}))


def _deaf(rng: SeededRandom, name: str) -> Workload:
    longest = rng.choice([0.5, 3.0, 9.0, 25.0])
    steps = [*_talk(rng, name), Deaf(seconds=longest), Say(text=name)]
    return Workload(
        kind="deaf", script=_how(rng, steps), ends=frozenset({"completed"}), deaf_for=longest
    )


def _crash(rng: SeededRandom, name: str) -> Workload:
    steps = [*_talk(rng, name), Crash(message=name, depth=rng.randrange(3))]
    script = _how(rng, steps)
    return Workload(kind="crash", script=script, ends=frozenset({"failed"}), crashes=True)


def _rude(rng: SeededRandom, name: str) -> Workload:
    """Crash when interrupted."""
    steps = [*_talk(rng, name), Wait(seconds=rng.moment(25))]
    script = _how(rng, steps, interrupt="crash", starts=True)
    return Workload(kind="rude", script=script, ends=frozenset({"completed"}), crashes=True)


def _silent(rng: SeededRandom, name: str) -> Workload:
    steps = [*_talk(rng, name), Leave()]
    return Workload(
        kind="silent", script=_how(rng, steps), ends=frozenset({"failed"}), crashes=True
    )


def _failing(rng: SeededRandom, name: str) -> Workload:
    used, tokens = _uses(rng)
    kind = rng.choice([FailureKind.PROVIDER_ERROR, FailureKind.OVERLOADED, FailureKind.REFUSED])
    steps = [*_talk(rng, name), *used, Fail(kind=kind, message=name)]
    return Workload(
        kind="failing", script=_how(rng, steps), ends=frozenset({"failed"}), tokens=tokens
    )


def _limited(rng: SeededRandom, name: str) -> Workload:
    steps = [*_talk(rng, name), RateLimited()]
    return Workload(kind="limited", script=_how(rng, steps), ends=frozenset({"rate_limited"}))


def _hearing(rng: SeededRandom, name: str) -> Workload:
    steps = [*_talk(rng, name), Hear(), Say(text=name)]
    script = _how(rng, steps, append=rng.choice(["accept", "slow", "refuse"]))
    return Workload(kind="hearing", script=script, ends=frozenset({"completed", "timed_out"}))


def _tidy(rng: SeededRandom, name: str) -> Workload:
    """Emit the end, then continue for a while or forever, or emit another end."""
    after: list[Step] = rng.choice(
        [
            [Wait(seconds=rng.moment(8))],
            [Hang()],
            [Say(text="late"), Use(output=1)],
            [Fail()],
            [Crash()],
        ]
    )
    steps = [*_talk(rng, name), Finish(), *after]
    return Workload(
        kind="tidy", script=_how(rng, steps), ends=frozenset({"completed"}), crashes=True
    )


def _turns(rng: SeededRandom, name: str) -> Workload:
    turn: tuple[Step, ...] = (
        Say(text=name),
        TurnEnd(open_tasks=rng.randrange(2)),
        Wait(seconds=rng.moment(5)),
    )
    steps: list[Step] = [Repeat(steps=turn, times=rng.randrange(1, 4))]
    return Workload(kind="turns", script=_how(rng, steps), ends=frozenset({"completed"}))


def _costly(rng: SeededRandom, name: str) -> Workload:
    """Use more than the budget that simulated callers set."""
    use = Use(input=900, usd=0.5)
    steps: list[Step] = [use, Wait(seconds=rng.moment(3)), use, Wait(seconds=20), Say(text=name)]
    return Workload(kind="costly", script=_how(rng, steps), ends=frozenset({"completed", "failed"}))


def _bomb(rng: SeededRandom, name: str) -> Workload:
    """Crash the provider's adapter, once or until its supervisor stops."""
    again: tuple[Step, ...] = (CrashAdapter(), Wait(seconds=rng.choice([0.0, 0.0, 0.2])))
    steps: list[Step] = [*_talk(rng, name), Repeat(steps=again, times=rng.choice([1, 1, 6]))]
    return Workload(
        kind="bomb",
        script=_how(rng, [*steps, Wait(seconds=1)]),
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
