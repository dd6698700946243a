"""Misbehaviours of agents: playbooks for any agent whose dialect is known.

`CHAOS` is a table: the name of a misbehaviour, its playbook, and the end that a run must have. The
ends are the same for all providers, because the port promises them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import msgspec

from sessionmgr.model import RunStatus
from sessionmgr.testing.player.playbook import (
    CloseStep,
    DribbleStep,
    ExitStep,
    GrowStep,
    HangStep,
    IgnoreStep,
    LeakStep,
    RepeatStep,
    Step,
    UntilClosedStep,
    WriteStep,
)
from sessionmgr.wire import LIMIT


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's protocol: the bytes on the wire for what every agent sends."""

    opening: tuple[Step, ...]
    """Everything before the turn's first text: greetings, and the wait for the prompt.

    Where an agent replies to requests by their ids, expect them with an id of your own that is
    `free`, and write the replies to that id with `reply=True`.
    """
    word: Callable[[str], bytes]
    """Returns a whole frame, with its newline, that streams some text."""
    end: bytes
    """The frame that ends the turn successfully.

    If it is the reply to a request that the opening expects, it gets the id of that request.
    """


Playbook: TypeAlias = Callable[[Dialect, str], list[Step]]


class Misbehaviour(msgspec.Struct, frozen=True, kw_only=True):
    """One misbehaviour, and its effect on a run. `text` is the text that must be stored."""

    name: str
    playbook: Playbook
    """Makes the playbook, from a dialect and the file for the pid of a leaked process."""
    status: RunStatus = RunStatus.COMPLETED
    cancel: bool = False
    """Whether the run would not end by itself, and is cancelled."""
    told: str | None = None
    """An event type that the run must have."""
    text: str | None = None

    def __str__(self) -> str:
        return self.name


WORDS: Final = "größer 🙂 £"
FLOOD: Final = 20_000

_END: Final = (UntilClosedStep(),)


def _say(dialect: Dialect, text: str = "half") -> WriteStep:
    return WriteStep(dialect.word(text))


def _done(dialect: Dialect) -> WriteStep:
    return WriteStep(dialect.end, reply=True)


def _flood(dialect: Dialect, note: str) -> list[Step]:
    words = RepeatStep(dialect.word("word "), FLOOD)
    return [*dialect.opening, words, _done(dialect), *_END]


def _complain_without_end(dialect: Dialect, note: str) -> list[Step]:
    flood = RepeatStep(b"something is wrong\n", FLOOD * 5, 2)
    return [*dialect.opening, _say(dialect), flood, _done(dialect), *_END]


def _hang_after_the_result(dialect: Dialect, note: str) -> list[Step]:
    return [*dialect.opening, _say(dialect), _done(dialect), HangStep()]


def _be_deaf_after_the_result(dialect: Dialect, note: str) -> list[Step]:
    return [IgnoreStep(), *_hang_after_the_result(dialect, note)]


def _hang_in_mid_turn(dialect: Dialect, note: str) -> list[Step]:
    return [*dialect.opening, _say(dialect), HangStep()]


def _ignore_term(dialect: Dialect, note: str) -> list[Step]:
    return [IgnoreStep(), *_hang_in_mid_turn(dialect, note)]


def _leak(dialect: Dialect, note: str) -> list[Step]:
    return [*dialect.opening, _say(dialect), LeakStep(note), _done(dialect), *_END]


def _leak_and_go(dialect: Dialect, note: str) -> list[Step]:
    held = LeakStep(note, holds_pipes=True)
    return [*dialect.opening, _say(dialect), held, _done(dialect), ExitStep()]


def _write_a_long_line(dialect: Dialect, note: str) -> list[Step]:
    head, _, tail = dialect.word("\0").partition(rb"\u0000")
    long = GrowStep(head, LIMIT + 1, tail)
    return [*dialect.opening, _say(dialect), long, _done(dialect), *_END]


def _cut_characters(dialect: Dialect, note: str) -> list[Step]:
    return [*dialect.opening, DribbleStep(dialect.word(WORDS)), _done(dialect), *_END]


def _make_noise(dialect: Dialect, note: str) -> list[Step]:
    noise = b"\x1b[32mstarting up...\x1b[0m\n[INFO] \xff\xfe\n\n\r\n"
    return [
        WriteStep(noise),
        *dialect.opening,
        WriteStep(noise),
        _say(dialect),
        WriteStep(b'{"half": \n[]\nnull\n"text"\n{"type": "never heard of"}\n' + noise),
        _done(dialect),
        *_END,
    ]


def _stop_in_mid_line(dialect: Dialect, note: str) -> list[Step]:
    half = WriteStep(dialect.word("more")[:-5])
    return [*dialect.opening, _say(dialect), half, ExitStep()]


def _go_in_mid_turn(dialect: Dialect, note: str) -> list[Step]:
    return [*dialect.opening, _say(dialect), ExitStep()]


def _go_before_the_turn(dialect: Dialect, note: str) -> list[Step]:
    return [ExitStep()]


def _fail_in_mid_turn(dialect: Dialect, note: str) -> list[Step]:
    return [*dialect.opening, _say(dialect), WriteStep(b"it is all over\n", 2), ExitStep(3)]


def _fall_silent(dialect: Dialect, note: str) -> list[Step]:
    return [*dialect.opening, _say(dialect), CloseStep(1), HangStep()]


def _stop_listening(dialect: Dialect, note: str) -> list[Step]:
    return [*dialect.opening, CloseStep(0), _say(dialect), _done(dialect), HangStep()]


_FAILED: Final = RunStatus.FAILED
_CANCELLED: Final = RunStatus.CANCELLED

CHAOS: Final[tuple[Misbehaviour, ...]] = (
    Misbehaviour(name="floods", playbook=_flood, text="word " * FLOOD),
    Misbehaviour(name="complains without end", playbook=_complain_without_end, text="half"),
    Misbehaviour(name="hangs after the result", playbook=_hang_after_the_result, text="half"),
    Misbehaviour(name="is deaf after the result", playbook=_be_deaf_after_the_result, text="half"),
    Misbehaviour(
        name="hangs in mid-turn",
        playbook=_hang_in_mid_turn,
        status=_CANCELLED,
        cancel=True,
        text="half",
    ),
    Misbehaviour(
        name="ignores TERM", playbook=_ignore_term, status=_CANCELLED, cancel=True, text="half"
    ),
    Misbehaviour(name="leaks a process", playbook=_leak, text="half"),
    Misbehaviour(name="leaks a process that holds its pipes", playbook=_leak_and_go, text="half"),
    Misbehaviour(
        name="writes a line that is too long",
        playbook=_write_a_long_line,
        told="error_occurred",
        text="half",
    ),
    Misbehaviour(name="cuts characters anywhere", playbook=_cut_characters, text=WORDS),
    Misbehaviour(name="makes noise", playbook=_make_noise, told="output_received", text="half"),
    Misbehaviour(name="stops in the middle of a line", playbook=_stop_in_mid_line, status=_FAILED),
    Misbehaviour(
        name="goes in mid-turn, with 0", playbook=_go_in_mid_turn, status=_FAILED, text="half"
    ),
    Misbehaviour(name="goes before the turn, with 0", playbook=_go_before_the_turn, status=_FAILED),
    Misbehaviour(name="fails in mid-turn", playbook=_fail_in_mid_turn, status=_FAILED, text="half"),
    Misbehaviour(
        name="closes its output and lives", playbook=_fall_silent, status=_FAILED, text="half"
    ),
    Misbehaviour(name="closes its ears", playbook=_stop_listening, text="half"),
)
