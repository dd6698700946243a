"""What is done when Claude Code does not start well, and why: in the words of the record.

A child that is to be kept, and hangs or dies before it has taken its prompt, is replaced by one of
the run's own. One that knows no frames is run for its plain text. Where the prompt may have been
taken nothing is tried again: it could be done twice, and that is for the caller to weigh.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.model import ErrorOccurred, Failure, FailureKind
from sessionmgr_adapters.claude.failures import complaint_kind

if TYPE_CHECKING:
    from sessionmgr_adapters.claude.turn import Turn

PATIENCE: Final = 25.0
"""Seconds for a child that is to be kept to say its first word: less than the start clock has."""

OF_FRAMES: Final = (
    *("--output-format", "--input-format", "--replay-user-messages", "--include-partial-messages"),
    *("--permission-prompt-tool", "--verbose"),
)
"""The flags that only make sense where frames are spoken."""
_KNOWS_NO_FRAMES: Final = re.compile(f"(unknown option|invalid).*({'|'.join(OF_FRAMES)})|"
                                     f"({'|'.join(OF_FRAMES)}).*invalid")  # fmt: skip


class Missed(Enum):
    """How a child has missed its run."""

    WAS_DEAD = auto()
    """It had been kept, and was dead already."""
    HUNG = auto()
    DIED = auto()
    KNOWS_NO_FRAMES = auto()


class Way(msgspec.Struct, kw_only=True):
    """How a run is to be had, and what is to be said of that."""

    is_own: bool
    """Whether its child serves no other run."""
    is_last: bool
    """Whether there is nothing else to try but plain text."""
    notes: list[ErrorOccurred] = msgspec.field(default_factory=list[ErrorOccurred])
    is_renamed: bool = False
    """Whether its child serves another session now than it is known by."""


def missed_by(turn: Turn, *, was_used: bool) -> Missed | None:
    """Return how a child has missed its run; None if it has heard of it, or says why it did not."""
    if turn.failure is not None or turn.state.failure is not None or turn.is_heard:
        return None
    if turn.is_deaf:
        return Missed.KNOWS_NO_FRAMES if turn.hears_noise_alone else Missed.HUNG
    if not turn.is_broken:
        return None
    if was_used:
        return Missed.WAS_DEAD
    connection = turn.seat.connection
    complaint = "" if connection.facts is None else connection.tail.text()
    if turn.hears_noise_alone or _KNOWS_NO_FRAMES.search(complaint):
        return Missed.KNOWS_NO_FRAMES
    return None if complaint_kind(complaint) else Missed.DIED


_TOLD: Final = {
    Missed.HUNG: "Claude Code says nothing: the run has a process of its own",
    Missed.DIED: "Claude Code died as it started: the run has a process of its own",
    Missed.KNOWS_NO_FRAMES: "Claude Code does not speak stream-json: it is run for plain text, and "
    "what it would ask is denied",
}


def notice(missed: Missed) -> ErrorOccurred:
    """Return the event that says what is done instead."""
    failure = Failure(
        kind=FailureKind.START_FAILED,
        message=_TOLD[missed],
        retryable=True,
        provider_code=f"fallback_{missed.name.lower()}",
        phase="start",
    )
    return ErrorOccurred(failure=failure, severity="warning")
