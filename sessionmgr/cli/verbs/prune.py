"""The verb `prune`: delete the streamed pieces of old runs, or whole old sessions."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import msgspec
import trio

from sessionmgr.cli.lookup import resolve_id
from sessionmgr.cli.queries import with_store
from sessionmgr.cli.terminal.format_time import parse_since
from sessionmgr.cli.terminal.stdout import print_json, print_line, print_note

if TYPE_CHECKING:
    import argparse

    from sessionmgr.model import Json
    from sessionmgr.store import RewriteResult, Store

HELP: Final = """\
Delete the streamed pieces (of messages, reasoning, tool output) of runs that ended before a
time. Whole messages, tool calls, results, costs and event numbers stay; readers get a note
about each gap. With --older-than, delete whole sessions whose runs all ended before a time,
with their events, results, costs, snapshots and images. The freed space returns to the disk.

  sessionmgr prune --before 30d
  sessionmgr prune --older-than 365d"""

BEFORE: Final = "30d"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the time and the session."""
    moment = parser.add_mutually_exclusive_group()
    moment.add_argument(
        "--before",
        default=BEFORE,
        metavar="WHEN",
        help=f"delete pieces of runs that ended before this age or date (default: {BEFORE})",
    )
    moment.add_argument(
        "--older-than",
        metavar="WHEN",
        help="delete sessions whose runs all ended before this age or date (default: none)",
    )
    parser.add_argument("--session", metavar="ID", help="only in this session (default: in all)")


def run(args: argparse.Namespace) -> int:
    """Delete the events or sessions and return the exit code."""
    return with_store(args, _prune)


async def _prune(args: argparse.Namespace, store: Store) -> int:
    flag, when = "--before", args.before
    if args.older_than is not None:
        flag, when = "--older-than", args.older_than
    before = int(parse_since(flag, when, time.time()) * 1000)
    session_id = None
    if args.session is not None:
        _, session_id = await resolve_id(store, args.session, "session")
    if args.older_than is None:
        pruned = await store.prune(before=before, session_id=session_id)
        freed, counts = pruned.freed, msgspec.to_builtins(pruned)
        what = f"deleted {pruned.events} events of {pruned.runs} runs"
        size = pruned.size
    else:
        removed = await store.remove(before=before, session_id=session_id)
        freed, counts = removed.freed, msgspec.to_builtins(removed)
        what = f"deleted {removed.sessions} sessions with {removed.events} events"
        what += f" and {removed.blobs} images" if removed.blobs else ""
        size = removed.size
    anew = await trio.to_thread.run_sync(_rewrite, args)
    if anew.why_not is not None:
        print_note(f"{args.configuration.store} keeps its size: {anew.why_not}")
    freed += anew.freed
    _print_freed(args, {**counts, "freed": freed}, f"{what}, {_megabytes(size)}", freed)
    return 0


def _rewrite(args: argparse.Namespace) -> RewriteResult:
    """Rewrite a file of an earlier version, which cannot shrink otherwise."""
    from sessionmgr.store import rewrite_file

    return rewrite_file(args.configuration.store)


def _print_freed(args: argparse.Namespace, counts: dict[str, Json], what: str, freed: int) -> None:
    if args.json:
        print_json(counts)
    else:
        print_line(f"{what}; the file is {_megabytes(freed)} smaller" if freed else what)


def _megabytes(size: int) -> str:
    return f"{size / 1_000_000:.1f} MB"
