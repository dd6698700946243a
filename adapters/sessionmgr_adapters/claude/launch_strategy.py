"""Launch strategy of a run: its process, the failure of its start, and the report of a fallback."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

import msgspec

from sessionmgr.model import ErrorOccurred, Failure, FailureKind


class StartFailure(Enum):
    """Kind of a failed start."""

    WAS_DEAD = auto()
    """The process was kept from an earlier run, and had died."""
    HUNG = auto()
    DIED = auto()
    KNOWS_NO_FRAMES = auto()


class LaunchStrategy(msgspec.Struct, kw_only=True):
    """How a run gets its process, and the events that report it."""

    is_own: bool
    """Whether the process serves only this run."""
    is_last: bool
    """Whether plain text is the only fallback left."""
    notes: list[ErrorOccurred] = msgspec.field(default_factory=list[ErrorOccurred])
    is_renamed: bool = False
    """Whether the process now serves another session than the one it was started for."""


_NOTICES: Final = {
    StartFailure.HUNG: "Claude Code is silent; the run gets a process of its own",
    StartFailure.DIED: "Claude Code died at its start; the run gets a process of its own",
    StartFailure.KNOWS_NO_FRAMES: "Claude Code does not speak stream-json; the run uses plain "
    "text, and every request for approval is denied",
}


def fallback_event(missed: StartFailure) -> ErrorOccurred:
    """Return the event that reports the fallback after a failed start."""
    failure = Failure(
        kind=FailureKind.START_FAILED,
        message=_NOTICES[missed],
        retryable=True,
        provider_code=f"fallback_{missed.name.lower()}",
        phase="start",
    )
    return ErrorOccurred(failure=failure, severity="warning")
