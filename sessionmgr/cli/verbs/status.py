"""The verb `status`: show the progress of one batch, from any terminal."""

from __future__ import annotations

import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.cli.batch_records import batch_records, overview_of
from sessionmgr.cli.errors import CommandLineInvalid, StoreEmpty
from sessionmgr.cli.foreign_batch import BatchState, batch_state
from sessionmgr.cli.queries import PATIENCE, open_existing_store
from sessionmgr.cli.suggested_command import suggested_command
from sessionmgr.cli.terminal.colour import colour_for, uncoloured
from sessionmgr.cli.terminal.format import format_age, pluralize
from sessionmgr.cli.terminal.format_path import short_path
from sessionmgr.cli.terminal.progress_display import ProgressDisplay
from sessionmgr.cli.terminal.render_progress import render_progress
from sessionmgr.cli.terminal.safe_text import one_line, truncate
from sessionmgr.cli.terminal.signals import INTERRUPTED, run_verb
from sessionmgr.cli.terminal.stdout import print_json, print_line, print_note
from sessionmgr.cli.terminal.table import terminal_width
from sessionmgr.model import parse_timestamp
from sessionmgr.store import open_sqlite_store

if TYPE_CHECKING:
    import argparse

    from sessionmgr.batch import BatchOverview
    from sessionmgr.cli.config.configuration import Configuration
    from sessionmgr.store import Store

HELP: Final = """\
Show a batch as the terminal that runs it does: counts, cost, and each running job with
what it is doing; then the jobs that failed. It changes nothing and works from any
terminal. OUT is the directory of the batch; without it, the batch that runs, or else the
last one that has changed, is shown. --follow keeps showing it until its process ends.

  sessionmgr status
  sessionmgr status runs/night --follow"""

EVERY: Final = 1.0
"""Seconds between two updates of `--follow`."""
USUAL: Final = 100
"""Width of the display where lines may have any length."""
TALLEST: Final = 1000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the directory, and whether to follow."""
    parser.add_argument(
        "out",
        nargs="?",
        metavar="OUT",
        help="directory of the batch (default: the running or the latest batch)",
    )
    parser.add_argument(
        "-f",
        "--follow",
        action="store_true",
        help="keep showing it until its process ends (default: show it once)",
    )


def run(args: argparse.Namespace) -> int:
    """Show the batch and return the exit code."""
    return run_verb(_status, args)


async def _status(args: argparse.Namespace) -> int:
    configuration: Configuration = args.configuration
    async with AsyncExitStack() as stack:
        store: Store | None = None
        try:
            store = await stack.enter_async_context(open_existing_store(configuration))
        except StoreEmpty:
            store = None
        overview = await _chosen(store, args.out)
        named = overview.store
        if named is not None and is_elsewhere(str(named), configuration):
            store = await stack.enter_async_context(open_sqlite_store(named, patience=PATIENCE))
        if args.follow and overview.holder is not None:
            return await _follow(args, store, overview.out)
        _show(await batch_state(store, overview), args)
    return 0


async def _chosen(store: Store | None, out: str | None) -> BatchOverview:
    """Return the batch in a directory, or the running or the latest one.

    Raises:
        CommandLineInvalid: There is no batch.
        LedgerUnusable: Its ledger is unreadable.
    """
    if out is not None:
        found = await overview_of(Path(out))
        if found is None:
            raise CommandLineInvalid(
                f"status: {out} contains no batch; sessionmgr batches lists the known ones"
            )
        return found
    records = [each for each in await batch_records(store) if each.out and not each.removed]
    on = [each for each in records if each.pid is not None]
    if len(on) > 1:
        others = len(on) - 1
        print_note(
            f"{pluralize(others, 'other batch runs', 'other batches run')}; see: sessionmgr batches"
        )
    for record in (*on, *records):
        assert record.out is not None
        found = await overview_of(Path(record.out))
        if found is not None:
            return found
    raise CommandLineInvalid("status: no batch found; name its directory: status OUT")


def is_elsewhere(store: str, configuration: Configuration) -> bool:
    """Return whether the store of a batch exists and differs from that of the settings."""
    path, ours = Path(store), configuration.store
    return path.exists() and not (ours.exists() and path.samefile(ours))


# --- one view ------------------------------------------------------------------------------------


def _show(state: BatchState, args: argparse.Namespace) -> None:
    if args.json:
        print_json(state)
        return
    width = terminal_width() or USUAL
    ink = colour_for(sys.stdout) if sys.stdout is not None else uncoloured
    print_line(truncate(_headline(state), width - 1))
    for line in render_progress(state.progress, width, TALLEST):
        print_line("".join(ink(piece.text, piece.tone) for piece in line))
    for failed in state.failed_jobs:
        why = f": {failed.why}" if failed.why else ""
        said = one_line(f"✗ {failed.job} {failed.status.replace('_', ' ')}{why}")
        print_line(ink(truncate(said, width - 1), "bad"))
    hidden = state.progress.failed - len(state.failed_jobs)
    if state.failed_jobs and hidden > 0:
        print_line(f"  … and {hidden} earlier failed jobs")
    for hint in _hints(state, args.configuration):
        print_note(hint)


def _headline(state: BatchState) -> str:
    out, now = short_path(state.out), time.time()
    if state.holder is not None:
        started = format_age(now - parse_timestamp(state.started_at))
        return f"{out}: running in {state.holder}, started {started} ago"
    changed = format_age(now - parse_timestamp(state.changed_at))
    return f"{out}: not running, last changed {changed} ago"


def _hints(state: BatchState, configuration: Configuration) -> list[str]:
    """Return suggestions for the next command."""
    hints: list[str] = []
    if state.holder is None and state.progress.waiting:
        left = f"{pluralize(state.progress.waiting, 'job')} left"
        if state.interrupted:
            left += f" ({state.interrupted} interrupted)"
        hints.append(f"{left}; the same sessionmgr batch command continues the batch")
    if state.failed_jobs:
        job = state.failed_jobs[0].job
        words = ["show", job, "--batch", short_path(state.out)]
        is_named = configuration.sources.get("store") == "--store"
        if not is_named and state.store is not None and is_elsewhere(state.store, configuration):
            words += ["--store", short_path(state.store)]
        hints.append(f"details: {suggested_command(configuration, *words)}")
    return hints


# --- following -----------------------------------------------------------------------------------


async def _follow(args: argparse.Namespace, store: Store | None, out: Path) -> int:
    display = ProgressDisplay(sys.stdout, quiet=args.quiet or args.json)
    state: BatchState | None = None
    try:
        while True:
            overview = await overview_of(out)
            if overview is None:
                break
            before, state = state, await batch_state(store, overview)
            if overview.holder is None:
                break
            if args.json:
                if before is None or _counts(before) != _counts(state):
                    print_json(state)
            else:
                await display.refresh(state.progress)
            await trio.sleep(EVERY)
        await display.clear()
    except KeyboardInterrupt:
        print_note("stopped watching; the batch continues")
        return INTERRUPTED
    if state is not None:
        _show(state, args)
    return 0


def _counts(state: BatchState) -> tuple[object, ...]:
    """Return the values whose change causes another line of JSON."""
    progress = state.progress
    jobs = tuple((each.job, each.attempt, each.doing) for each in progress.jobs)
    return (
        *(progress.done, progress.failed, progress.cancelled, progress.running),
        *(progress.waiting, progress.retrying, jobs),
    )
