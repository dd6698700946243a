"""Start failures of Claude Code, and the launch strategy that follows each.

A process that is kept, and hangs or dies before it has taken its prompt, is replaced by one of the
run's own. One that knows no frames is replaced by one that prints plain text. Where the prompt may
have been taken nothing is tried again: it could be done twice, and the caller decides that.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.model import ErrorOccurred, Failure, FailureKind
from sessionmgr_adapters.claude.failures import complaint_kind
from sessionmgr_adapters.claude.phase import Phase

if TYPE_CHECKING:
    from sessionmgr_adapters.claude.driver import ClaudeDriver

PATIENCE: Final = 25.0
"""Seconds for a kept process to say its first word: less than the start timeout."""

OF_FRAMES: Final = (
    *("--output-format", "--input-format", "--replay-user-messages", "--include-partial-messages"),
    *("--permission-prompt-tool", "--verbose"),
)
"""Flags that have a meaning only where frames are exchanged."""
_KNOWS_NO_FRAMES: Final = re.compile(f"(unknown option|invalid).*({'|'.join(OF_FRAMES)})|"
                                     f"({'|'.join(OF_FRAMES)}).*invalid")  # fmt: skip


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


def start_failure_of(driver: ClaudeDriver, *, was_used: bool) -> StartFailure | None:
    """Return how a start failed; None if the agent has answered, or says what is wrong."""
    if driver.failure is not None or driver.state.failure is not None or driver.is_heard:
        return None
    is_noise_alone = driver.reads > 0 and not driver.has_spoken
    if driver.phase is Phase.SILENT:
        return StartFailure.KNOWS_NO_FRAMES if is_noise_alone else StartFailure.HUNG
    if driver.phase is not Phase.LOST:
        return None
    if was_used:
        return StartFailure.WAS_DEAD
    connection = driver.process.connection
    complaint = "" if connection.facts is None else connection.tail.text()
    if is_noise_alone or _KNOWS_NO_FRAMES.search(complaint):
        return StartFailure.KNOWS_NO_FRAMES
    return None if complaint_kind(complaint) else StartFailure.DIED


_TOLD: Final = {
    StartFailure.HUNG: "Claude Code says nothing: the run has a process of its own",
    StartFailure.DIED: "Claude Code died as it started: the run has a process of its own",
    StartFailure.KNOWS_NO_FRAMES: "Claude Code does not speak stream-json: it is run for plain "
    "text, and what it would ask is denied",
}


def notice(missed: StartFailure) -> ErrorOccurred:
    """Return the event that reports the fallback."""
    failure = Failure(
        kind=FailureKind.START_FAILED,
        message=_TOLD[missed],
        retryable=True,
        provider_code=f"fallback_{missed.name.lower()}",
        phase="start",
    )
    return ErrorOccurred(failure=failure, severity="warning")
