"""What the end of a child process, or that it could not be started, means for a run."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Final

from sessionmgr.errors import (
    CommandInvalid,
    NoSuchDirectory,
    ProcessError,
    ProfileRefused,
    ProgramNotFound,
)
from sessionmgr.model import Failure, FailureKind, ProcessExited
from sessionmgr.process import is_passing
from sessionmgr.process.facts import Emptied

if TYPE_CHECKING:
    from sessionmgr.process.facts import ExitFacts
    from sessionmgr.process.tail import Tail

_EMPTIED: Final = {Emptied.NO_CHILD: True, Emptied.SWEPT: True, Emptied.UNPROVED: False}


def process_exited(facts: ExitFacts) -> ProcessExited:
    """Return the event that says how a run's own process, and all that came of it, ended."""
    left = tuple(f"{each.name} (pid {each.pid}, uid {each.uid})" for each in facts.left_running)
    return ProcessExited(
        exit_code=facts.exit_code,
        signal=facts.signal,
        forced=facts.forced,
        killed_by_os=facts.killed_by_os,
        emptied=_EMPTIED.get(facts.emptied),
        left_running=left,
    )


def exit_failure(facts: ExitFacts, tail: Tail, *, phase: str = "turn") -> Failure:
    """Return the failure that a child's end is, if it is one."""
    complaint = tail.short() or None
    kind = FailureKind.KILLED_BY_OS if facts.killed_by_os else FailureKind.PROCESS_EXITED
    return Failure(
        kind=kind,
        message=_how(facts) + (f": {complaint}" if complaint else ""),
        exit_code=facts.exit_code,
        stderr_tail=complaint,
        phase=phase,
    )


def start_failure(error: ProcessError) -> Failure:
    """Return the failure that it is when a child cannot be started."""
    match error:
        case ProgramNotFound():
            kind = FailureKind.CLI_NOT_FOUND
        case CommandInvalid() | NoSuchDirectory() | ProfileRefused():
            kind = FailureKind.CONFIG_INVALID
        case _:
            kind = FailureKind.START_FAILED
    return Failure(kind=kind, message=str(error), retryable=is_passing(error), phase="start")


def _how(facts: ExitFacts) -> str:
    if facts.signal is not None:
        return f"it was ended by {_name(facts.signal)}"
    if facts.exit_code is None:
        return "it ended, and nobody saw how"
    return f"it ended with exit code {facts.exit_code}"


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
