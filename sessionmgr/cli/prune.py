"""The verb `prune`: drop the streamed pieces of runs that ended long ago."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.cli.lookup import find
from sessionmgr.cli.output import say, say_json
from sessionmgr.cli.stored import with_store
from sessionmgr.cli.when import since

if TYPE_CHECKING:
    import argparse

    from sessionmgr.store import Store

HELP: Final = """\
Drop the streamed pieces (of messages, reasoning, tools' output) of runs that ended
before a moment. Whole messages, tool calls, results and costs stay, and so do all
numbers: whoever reads over a gap is told of it. The file does not shrink, but what is
free in it is used again.

  sessionmgr prune --before 30d"""

BEFORE: Final = "30d"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take a moment, and whose."""
    parser.add_argument(
        "--before", default=BEFORE, metavar="WHEN", help=f"an age or a date (default: {BEFORE})"
    )
    parser.add_argument("--session", metavar="ID", help="of this session only")


def run(args: argparse.Namespace) -> int:
    """Drop them and return the exit code."""
    return with_store(args, _prune)


async def _prune(args: argparse.Namespace, store: Store) -> int:
    before = int(since("--before", args.before, time.time()) * 1000)
    session_id = None
    if args.session is not None:
        _, session_id = await find(store, args.session, "session")
    pruned = await store.prune(before=before, session_id=session_id)
    if args.json:
        say_json(msgspec.to_builtins(pruned))
    else:
        size = f"{pruned.size / 1_000_000:.1f} MB"
        say(f"dropped {pruned.events} events of {pruned.runs} runs, {size}")
    return 0
