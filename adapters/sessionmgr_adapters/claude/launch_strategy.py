"""How a run gets its process, how the start of one fails, and the event that reports a fallback."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

import msgspec

from sessionmgr.model import ErrorOccurred, Failure, FailureKind


class StartFailure(Enum):
    """How the start of a run failed."""

    WAS_DEAD = auto()
    """The process had been kept, and was dead already."""
    HUNG = auto()
    DIED = auto()
    KNOWS_NO_FRAMES = auto()


class LaunchStrategy(msgspec.Struct, kw_only=True):
    """How a run gets its process, and what is reported about that."""

    is_own: bool
    """Whether the process serves no other run."""
    is_last: bool
    """Whether there is nothing else to try but plain text."""
    notes: list[ErrorOccurred] = msgspec.field(default_factory=list[ErrorOccurred])
    is_renamed: bool = False
    """Whether the process serves another session now than it was started for."""


_NOTICES: Final = {
    StartFailure.HUNG: "Claude Code says nothing: the run has a process of its own",
    StartFailure.DIED: "Claude Code died as it started: the run has a process of its own",
    StartFailure.KNOWS_NO_FRAMES: "Claude Code does not speak stream-json: it is run for plain "
    "text, and what it would ask is denied",
}


def fallback_event(missed: StartFailure) -> ErrorOccurred:
    """Return the event that reports the fallback."""
    failure = Failure(
        kind=FailureKind.START_FAILED,
        message=_NOTICES[missed],
        retryable=True,
        provider_code=f"fallback_{missed.name.lower()}",
        phase="start",
    )
    return ErrorOccurred(failure=failure, severity="warning")
