"""One run, shown while it goes on, to its end: its text, notes, questions, Ctrl-C."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.adapter import find_adapter
from sessionmgr.cli.next_step import to_type
from sessionmgr.cli.outlet import outlet
from sessionmgr.cli.output import ReaderGoneError, drop_stdout
from sessionmgr.cli.stopping import INTERRUPTED, Stopping, called
from sessionmgr.cli.telling import Note, Teller, closing
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

    from sessionmgr.cli.configuration import Configuration
    from sessionmgr.cli.outlet import Outlet
    from sessionmgr.manager import RunHandle
    from sessionmgr.model import AnyEvent, RunResult

COMPLETED: Final = 0
NOT_STARTED: Final = 1
NOT_COMPLETED: Final = 3
_WELL: Final = frozenset({RunStatus.COMPLETED, RunStatus.PAUSED})
NOBODY_READS: Final = "the reader of its output is gone"


@dataclass
class _Shown:
    """A run that is to be shown; `is_followed` says that those which come of it stand behind it."""

    run: RunHandle
    is_followed: trio.Event = field(default_factory=trio.Event)


async def show_runs(run: RunHandle, args: argparse.Namespace) -> int:
    """Show a run, and whatever it was told from elsewhere that became runs of their own."""
    code = COMPLETED
    waiting = [run]
    while waiting and code != INTERRUPTED:
        code = await _show_line([_Shown(each) for each in waiting], args) or code
        waiting = run.session.unended()
    return code


async def _show_line(line: list[_Shown], args: argparse.Namespace) -> int:
    """Show runs, and those that come of them meanwhile."""
    code = COMPLETED
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_look_ahead, line)
        for each in line:
            code = await show_run(each.run, args) or code
            if code == INTERRUPTED:
                break
            await each.is_followed.wait()
        nursery.cancel_scope.cancel()
    return code


async def _look_ahead(line: list[_Shown]) -> None:
    """Have runs stand in line as they come: by the time that one is shown, it may be over."""
    for each in line:
        await each.run.result()
        known = {other.run.id for other in line}
        line += [_Shown(run) for run in each.run.session.unended() if run.id not in known]
        each.is_followed.set()


async def show_run(run: RunHandle, args: argparse.Namespace) -> int:
    """Show a run to its end, and return the exit code; the first Ctrl-C cancels it, politely."""
    loudness = 0 if args.quiet or args.json else 1 + args.verbose
    screen = outlet(loudness=loudness, text=not args.json)
    stopping = Stopping(
        lambda signal_name: _ask_to_stop(run, signal_name, quiet=args.quiet),
        lambda: (
            f"\nsessionmgr: stopped at once; see: {to_type(args.configuration, 'show', run.id)}\n"
        ),
    )
    async with trio.open_nursery() as nursery:
        await nursery.start(stopping.watch)
        printing = trio.CancelScope()
        nursery.start_soon(stopping.give_up_on_reader, run.result, printing)
        try:
            with printing:
                await (_print_events if args.json else _tell)(run, screen)
        except ReaderGoneError:
            drop_stdout()
            run.cancel(NOBODY_READS)
        result = await run.result()
        nursery.cancel_scope.cancel()
    with stopping.patience_with_reader():
        await screen.put([closing(result), *next_steps(result, args.configuration)])
    if stopping.asked_by is not None and result.status is RunStatus.CANCELLED:
        return INTERRUPTED
    return exit_code(result)


def exit_code(result: RunResult) -> int:
    """Return what the shell is told of a run."""
    if result.status is RunStatus.CANCELLED and result.reason is EndReason.SHUTDOWN:
        return INTERRUPTED
    if result.failure is not None and result.failure.kind is FailureKind.START_FAILED:
        return NOT_STARTED
    return COMPLETED if result.status in _WELL else NOT_COMPLETED


async def _tell(run: RunHandle, screen: Outlet) -> None:
    teller = Teller()
    cursor = aiter(run)
    while events := await cursor.batch():
        await screen.put([piece for event in events for piece in teller.tell(event)])
    await screen.end_line()


async def _print_events(run: RunHandle, screen: Outlet) -> None:
    """Print events from `run_started` on; if it never started, its end and what led to that."""
    before: list[AnyEvent] | None = []
    async for event in run:
        if before is not None:
            if event.type == "run_started":
                before = None
            elif event.type in TERMINAL_TYPES:
                for each in before:
                    await screen.put_line(encode_event(each))
                before = None
            elif event.type != "message_sent":
                before.append(event)
        if before is None:
            await screen.put_line(encode_event(event))


def _ask_to_stop(run: RunHandle, signal_name: str, *, quiet: bool) -> None:
    run.cancel(called(signal_name))
    if not quiet:
        from sessionmgr.cli.output import note

        note(f"{called(signal_name)}: stopping the run; press Ctrl-C again to kill it")


def next_steps(result: RunResult, configuration: Configuration) -> list[Note]:
    """Return what to type next, where there is something to do about how it ended."""
    if result.status is RunStatus.COMPLETED:
        return []
    if _can_go_on(result):
        return [Note(f"to go on: {to_type(configuration, 'resume', result.id)}", "plain")]
    if result.failure is not None and result.failure.kind is FailureKind.SESSION_NOT_FOUND:
        return [*_of_a_lost_session(result)]
    return [Note(f"to look closer: {to_type(configuration, 'show', result.id)}", "plain")]


def _of_a_lost_session(result: RunResult) -> Iterator[Note]:
    """Yield notes on a provider session that was not found, and how its program finds it."""
    adapter, id = find_adapter(result.provider), result.provider_session_id
    known_as = adapter.display_name or adapter.name
    yield Note(
        f"{known_as} no longer has the session {id}, or has it only for another directory", "plain"
    )
    if adapter.resume_command is not None and id is not None:
        command = adapter.resume_command.format(id=id)
        yield Note(f"to look it up there: {command}", "plain")


def _can_go_on(result: RunResult) -> bool:
    if result.provider_session_id is None:
        return False
    failure = result.failure
    if failure is not None and not failure.resumable:
        return False
    return find_adapter(result.provider).capabilities.resume is not UNSUPPORTED
