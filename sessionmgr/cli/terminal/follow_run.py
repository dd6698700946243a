"""One run in the terminal that started it: text, notes, questions and Ctrl-C."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.adapter import StartRefused, find_adapter
from sessionmgr.cli.suggested_command import suggested_command
from sessionmgr.cli.terminal.console import make_console
from sessionmgr.cli.terminal.render_events import RunNoteLine, RunRenderer, describe_result
from sessionmgr.cli.terminal.signals import INTERRUPTED, SignalWatcher, signal_label
from sessionmgr.cli.terminal.stdout import ReaderGoneError, drop_stdout
from sessionmgr.model import (
    TERMINAL_TYPES,
    UNSUPPORTED,
    EndReason,
    FailureKind,
    RunStatus,
    encode_event,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from sessionmgr.adapter import ProviderAdapter
    from sessionmgr.cli.config.configuration import Configuration
    from sessionmgr.cli.terminal.console import Console
    from sessionmgr.manager import RunHandle
    from sessionmgr.model import AnyEvent, RunResult

COMPLETED: Final = 0
NOT_STARTED: Final = 1
NOT_COMPLETED: Final = 3
_WELL: Final = frozenset({RunStatus.COMPLETED, RunStatus.PAUSED})
NOBODY_READS: Final = "the reader of its output is gone"


@dataclass
class _FollowedRun:
    """A run to show; with `is_followed`, its follow-up runs are shown after it."""

    run: RunHandle
    is_followed: trio.Event = field(default_factory=trio.Event)


async def follow_runs(run: RunHandle, args: argparse.Namespace) -> int:
    """Show a run, and the follow-up runs that other terminals cause."""
    code = COMPLETED
    waiting = [run]
    while waiting and code != INTERRUPTED:
        code = await _follow_queue([_FollowedRun(each) for each in waiting], args) or code
        waiting = run.session.unended()
    return code


async def _follow_queue(line: list[_FollowedRun], args: argparse.Namespace) -> int:
    """Show the runs of a queue, and those that are added meanwhile."""
    code = COMPLETED
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_queue_follow_ups, line)
        for each in line:
            code = await follow_run(each.run, args) or code
            if code == INTERRUPTED:
                break
            await each.is_followed.wait()
        nursery.cancel_scope.cancel()
    return code


async def _queue_follow_ups(line: list[_FollowedRun]) -> None:
    """Add follow-up runs to the queue as they start: a run may be over before its turn."""
    for each in line:
        await each.run.result()
        known = {other.run.id for other in line}
        line += [_FollowedRun(run) for run in each.run.session.unended() if run.id not in known]
        each.is_followed.set()


async def follow_run(run: RunHandle, args: argparse.Namespace) -> int:
    """Show a run until it ends, and return the exit code; the first Ctrl-C cancels it."""
    loudness = 0 if args.quiet or args.json else 1 + args.verbose
    screen = make_console(loudness=loudness, text=not args.json)
    stopping = SignalWatcher(
        lambda signal_name: _ask_to_stop(run, signal_name, quiet=args.quiet),
        lambda: (
            "\nsessionmgr: stopped at once; see: "
            f"{suggested_command(args.configuration, 'show', run.id)}\n"
        ),
    )
    async with trio.open_nursery() as nursery:
        await nursery.start(stopping.watch)
        printing = trio.CancelScope()
        nursery.start_soon(stopping.cancel_stuck_output, run.result, printing)
        try:
            with printing:
                await (_print_events if args.json else _render_run)(run, screen)
        except ReaderGoneError:
            drop_stdout()
            run.cancel(NOBODY_READS)
        result = await run.result()
        nursery.cancel_scope.cancel()
    with stopping.final_output_scope():
        await screen.write([describe_result(result), *next_steps(result, args.configuration)])
    if stopping.asked_by is not None and result.status is RunStatus.CANCELLED:
        return INTERRUPTED
    return exit_code(result)


def exit_code(result: RunResult) -> int:
    """Return the exit code for the result of a run."""
    if result.status is RunStatus.CANCELLED and result.reason is EndReason.SHUTDOWN:
        return INTERRUPTED
    if result.failure is not None and result.failure.kind is FailureKind.START_FAILED:
        return NOT_STARTED
    return COMPLETED if result.status in _WELL else NOT_COMPLETED


async def _render_run(run: RunHandle, screen: Console) -> None:
    teller = RunRenderer()
    cursor = aiter(run)
    while events := await cursor.batch():
        await screen.write([piece for event in events for piece in teller.render(event)])
    await screen.end_line()


async def _print_events(run: RunHandle, screen: Console) -> None:
    """Print events from `run_started` on; if it never started, its end and the events before."""
    before: list[AnyEvent] | None = []
    async for event in run:
        if before is not None:
            if event.type == "run_started":
                before = None
            elif event.type in TERMINAL_TYPES:
                for each in before:
                    await screen.write_line(encode_event(each))
                before = None
            elif event.type != "message_sent":
                before.append(event)
        if before is None:
            await screen.write_line(encode_event(event))


def _ask_to_stop(run: RunHandle, signal_name: str, *, quiet: bool) -> None:
    run.cancel(signal_label(signal_name))
    if not quiet:
        from sessionmgr.cli.terminal.stdout import print_note

        print_note(f"{signal_label(signal_name)}: stopping the run; press Ctrl-C again to kill it")


def next_steps(result: RunResult, configuration: Configuration) -> list[RunNoteLine]:
    """Return suggestions for the next command, depending on how the run ended."""
    if result.status is RunStatus.COMPLETED:
        return []
    adapter = _adapter(result, configuration)
    if _is_resumable(result, adapter):
        return [
            RunNoteLine(
                f"to continue: {suggested_command(configuration, 'resume', result.id)}", "plain"
            )
        ]
    if result.failure is not None and result.failure.kind is FailureKind.SESSION_NOT_FOUND:
        return [*_lost_session_notes(result, adapter)]
    return [RunNoteLine(f"details: {suggested_command(configuration, 'show', result.id)}", "plain")]


def _adapter(result: RunResult, configuration: Configuration) -> type[ProviderAdapter] | None:
    """Return the adapter of a run; None if it, or its registry file, is missing here."""
    try:
        return find_adapter(result.provider, agents=configuration.agents)
    except StartRefused:
        return None


def _lost_session_notes(
    result: RunResult, adapter: type[ProviderAdapter] | None
) -> Iterator[RunNoteLine]:
    """Yield notes on a provider session that was not found, and on finding it in its program."""
    id = result.provider_session_id
    known_as = result.provider if adapter is None else adapter.display_name or adapter.name
    yield RunNoteLine(
        f"{known_as} no longer has the session {id}, or has it only for another directory", "plain"
    )
    if adapter is not None and adapter.resume_command is not None and id is not None:
        command = adapter.resume_command.format(id=id)
        yield RunNoteLine(f"to look it up there: {command}", "plain")


def _is_resumable(result: RunResult, adapter: type[ProviderAdapter] | None) -> bool:
    if result.provider_session_id is None:
        return False
    failure = result.failure
    if failure is not None and not failure.resumable:
        return False
    return adapter is None or adapter.capabilities.resume is not UNSUPPORTED
