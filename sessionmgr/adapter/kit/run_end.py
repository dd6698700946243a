"""Ends of a run: with validated output, or with the failure for its child's exit."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import UNSET

from sessionmgr.adapter import Closable, SecretFileRefused
from sessionmgr.adapter.kit.structured_output import validate_output
from sessionmgr.model import Failure, FailureKind, ProcessExited, UnreadableJson, parse_json
from sessionmgr.process import (
    CommandInvalid,
    EmptyProof,
    NoSuchDirectory,
    ProcessError,
    ProgramNotFound,
    is_transient_shortage,
)

if TYPE_CHECKING:
    from msgspec import UnsetType

    from sessionmgr.adapter import RunContext
    from sessionmgr.model import Json
    from sessionmgr.process import ExitReport, StderrTail

_TREE_EMPTY: Final = {EmptyProof.NO_CHILD: True, EmptyProof.SWEPT: True, EmptyProof.UNPROVED: False}


class ChildConnection(Closable, Protocol):
    """Connection to a child process; a connection to anything else has no `facts`."""

    @property
    def facts(self) -> ExitReport | None:
        """The report of the child's exit; None until then."""
        ...

    @property
    def tail(self) -> StderrTail:
        """The last lines that the child wrote to stderr."""
        ...


# --- a turn that ended ---------------------------------------------------------------------------


async def finish_with_output(
    run: RunContext, output: Json | UnsetType, *, stop_reason: str | None
) -> None:
    """Validate a run's structured output, and finish the run or fail it accordingly."""
    fault = validate_output(run.schema, output)
    if isinstance(fault, Failure):
        await run.fail(fault, stop_reason=stop_reason)
        return
    if fault is not None:
        run.emit_nowait(fault)
    await run.finish(stop_reason=stop_reason, structured=None if output is UNSET else output)


def parse_output(text: str) -> Json | UnsetType:
    """Return the JSON value of a text; `UNSET` if it is not JSON."""
    found = parse_json(text.encode(errors="replace"))
    return UNSET if isinstance(found, UnreadableJson) else found


# --- a run that is refused, or a child that could not be started -------------------------------


def config_failure(message: str) -> Failure:
    """Return the failure for an invalid option or configuration; the message names it."""
    return Failure(kind=FailureKind.CONFIG_INVALID, message=message, phase="start")


def start_failure(error: ProcessError) -> Failure:
    """Return the failure for a child that could not be started."""
    match error:
        case ProgramNotFound():
            kind = FailureKind.CLI_NOT_FOUND
        case CommandInvalid() | NoSuchDirectory() | SecretFileRefused():
            kind = FailureKind.CONFIG_INVALID
        case _:
            kind = FailureKind.START_FAILED
    return Failure(
        kind=kind, message=str(error), retryable=is_transient_shortage(error), phase="start"
    )


# --- a child that exited -------------------------------------------------------------------------


def process_exit_event(facts: ExitReport) -> ProcessExited:
    """Return the event that reports how a run's own process tree ended."""
    left = tuple(f"{each.name} (pid {each.pid}, uid {each.uid})" for each in facts.left_running)
    return ProcessExited(
        exit_code=facts.exit_code,
        signal=facts.signal,
        forced=facts.forced,
        killed_by_os=facts.killed_by_os,
        emptied=_TREE_EMPTY.get(facts.emptied),
        left_running=left,
    )


def connection_failure(connection: ChildConnection, *, phase: str = "turn") -> Failure:
    """Return the failure for a connection, to a child or not, that ended before the turn did."""
    if connection.facts is not None:
        return exit_failure(connection.facts, connection.tail, phase=phase)
    message = "the connection ended in the middle of a turn"
    return Failure(kind=FailureKind.PROTOCOL_ERROR, message=message, phase=phase)


def exit_failure(facts: ExitReport, tail: StderrTail, *, phase: str = "turn") -> Failure:
    """Return the failure for a child that exited before its turn ended."""
    complaint = tail.short() or None
    kind = FailureKind.KILLED_BY_OS if facts.killed_by_os else FailureKind.PROCESS_EXITED
    return Failure(
        kind=kind,
        message=_exit_description(facts) + (f": {complaint}" if complaint else ""),
        exit_code=facts.exit_code,
        stderr_tail=complaint,
        phase=phase,
    )


def _exit_description(facts: ExitReport) -> str:
    if facts.signal is not None:
        return f"ended by {_name(facts.signal)}"
    if facts.exit_code is None:
        return "unknown exit code"
    return f"exit code {facts.exit_code}"


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
