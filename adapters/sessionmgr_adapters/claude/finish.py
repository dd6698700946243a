"""The terminal event of a run: from its last result, or from the end of its process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from sessionmgr.adapter.kit.run_end import exit_failure, finish_with_output, process_exited
from sessionmgr.model import Failure, FailureKind
from sessionmgr_adapters.claude.failures import complaint_kind
from sessionmgr_adapters.claude.phase import Phase
from sessionmgr_adapters.claude.session_file import is_kept, path_of

if TYPE_CHECKING:
    from pathlib import Path

    from sessionmgr.adapter import RunContext
    from sessionmgr_adapters.claude.driver import ClaudeDriver
    from sessionmgr_adapters.claude.frames import Result


async def end_run(driver: ClaudeDriver, *, is_own: bool) -> None:
    """End a run that no other component has ended."""
    run, result = driver.run, driver.result
    driver.tell_notes()
    if driver.failure is not None:
        await run.fail(driver.failure)
    elif driver.phase is Phase.LOST or result is None:
        await _end_by_exit(driver, is_own=is_own)
    else:
        await _end_by_result(run, result, driver.state.failure)


async def _end_by_result(run: RunContext, result: Result, failure: Failure | None) -> None:
    stop_reason, found = result.stop_reason or result.terminal_reason, result.structured_output
    if failure is None:
        await finish_with_output(run, found, stop_reason=stop_reason)
    else:
        await run.fail(failure, stop_reason=stop_reason)


async def _end_by_exit(driver: ClaudeDriver, *, is_own: bool) -> None:
    run, facts = driver.run, driver.process.connection.facts
    if driver.state.failure is not None:  # it said why, and exited
        await run.fail(driver.state.failure)
    elif facts is None:
        message = "the connection ended in the middle of a turn"
        failure = Failure(
            kind=FailureKind.PROTOCOL_ERROR,
            message=message,
            resumable=await _is_resumable(driver),
            phase="turn",
        )
        await run.fail(failure)
    else:
        if not is_own:  # else it is reported once its process is gone
            run.emit_nowait(process_exited(facts))
        tail = driver.process.connection.tail
        failure = exit_failure(facts, tail, phase="turn" if driver.state.started else "start")
        kind = None if driver.state.started else complaint_kind(tail.text())
        failure = replace(
            failure,
            kind=kind or failure.kind,
            retryable=kind is None,
            resumable=await _is_resumable(driver),
        )
        await run.fail(failure)


async def _is_resumable(driver: ClaudeDriver) -> bool:
    """Return whether the prompt is on disk, so that another process can resume the session."""
    return driver.state.started and await is_kept(_path(driver))


def _path(driver: ClaudeDriver) -> Path | None:
    spec = driver.process.spec
    return path_of(driver.state.session_id or spec.session, spec.command.cwd, spec.command.env)
