"""How a run is told to have ended: by its last result, or by the end of its child."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from sessionmgr.adapter.kit.exit_failure import exit_failure, process_exited
from sessionmgr.adapter.kit.run_end import end_well
from sessionmgr.model import Failure, FailureKind
from sessionmgr_adapters.claude.failures import complaint_kind
from sessionmgr_adapters.claude.session_file import is_kept, path_of

if TYPE_CHECKING:
    from pathlib import Path

    from sessionmgr.adapter import RunContext
    from sessionmgr_adapters.claude.frames import Result
    from sessionmgr_adapters.claude.turn import Turn


async def end_run(run: RunContext, turn: Turn, *, is_own: bool) -> None:
    """Tell how a run ended that nobody else has ended."""
    result = turn.result
    turn.tell_notes()
    if turn.failure is not None:
        await run.fail(turn.failure)
    elif turn.is_broken or result is None:
        await _tell_of_its_death(run, turn, is_own=is_own)
    else:
        await _tell_of_its_result(run, result, turn.state.failure)


async def _tell_of_its_result(run: RunContext, result: Result, failure: Failure | None) -> None:
    stop_reason, found = result.stop_reason or result.terminal_reason, result.structured_output
    if failure is None:
        await end_well(run, found, stop_reason=stop_reason)
    else:
        await run.fail(failure, stop_reason=stop_reason)


async def _tell_of_its_death(run: RunContext, turn: Turn, *, is_own: bool) -> None:
    facts = turn.seat.connection.facts
    if turn.state.failure is not None:  # it said why, and went
        await run.fail(turn.state.failure)
    elif facts is None:
        message = "the connection ended in the middle of a turn"
        failure = Failure(
            kind=FailureKind.PROTOCOL_ERROR,
            message=message,
            resumable=await _is_resumable(turn),
            phase="turn",
        )
        await run.fail(failure)
    else:
        if not is_own:  # else it is told once that has been seen to its end
            run.emit_nowait(process_exited(facts))
        tail = turn.seat.connection.tail
        failure = exit_failure(facts, tail, phase="turn" if turn.state.started else "start")
        kind = None if turn.state.started else complaint_kind(tail.text())
        failure = replace(
            failure,
            kind=kind or failure.kind,
            retryable=kind is None,
            resumable=await _is_resumable(turn),
        )
        await run.fail(failure)


async def _is_resumable(turn: Turn) -> bool:
    """Return whether the prompt is on disk, so that another process can resume the session."""
    return turn.state.started and await is_kept(_path(turn))


def _path(turn: Turn) -> Path | None:
    spec = turn.seat.spec
    return path_of(turn.state.session_id or spec.session, spec.command.cwd, spec.command.env)
