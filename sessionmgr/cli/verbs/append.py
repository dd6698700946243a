"""The verb `append`: send a message to an active run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from sessionmgr.cli.errors import CommandLineInvalid
from sessionmgr.cli.inputs import require_utf8
from sessionmgr.cli.lookup import add_batch_flag
from sessionmgr.cli.queries import with_store
from sessionmgr.cli.send_request import find_active_run, print_answer, send_request

if TYPE_CHECKING:
    import argparse

    from sessionmgr.store import Store

HELP: Final = """\
Send a message to an active run. A provider that takes messages during a turn accepts it at
once; otherwise the message is queued and starts a run of its own after this one.

  sessionmgr append run_7hq2 "and keep it short\""""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the id and the message."""
    parser.add_argument("id", metavar="ID", help="run, its session, or job")
    parser.add_argument("text", metavar="TEXT", help="message; - reads it from stdin")
    add_batch_flag(parser)


def run(args: argparse.Namespace) -> int:
    """Send the message and return the exit code."""
    if args.text == "-":
        args.text = sys.stdin.read()
    if not args.text.strip():
        raise CommandLineInvalid("append: TEXT is empty; write the message")
    require_utf8("append: TEXT", args.text)
    return with_store(args, _append)


async def _append(args: argparse.Namespace, store: Store) -> int:
    run = await find_active_run(store, args.id, args.batch)
    answer = await send_request(store, "append", run.session_id, run.run_id, {"content": args.text})
    state = answer.get("state")
    what = (
        "received the message"
        if state == "accepted"
        else f"the message is queued for {answer['run']}, which starts after this run"
    )
    print_answer(run.run_id, answer, what, as_json=args.json)
    return 0
