"""The verb `pause`: stop a run so that it can be resumed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sessionmgr.cli.lookup import add_batch_flag
from sessionmgr.cli.queries import with_store
from sessionmgr.cli.send_request import find_active_run, print_answer, send_request

if TYPE_CHECKING:
    import argparse

    from sessionmgr.store import Store

HELP: Final = """\
Interrupt a run and store a snapshot from which sessionmgr resume ID continues it later, in
any process. The id of a session stands for its active run."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the id, and the contents of the snapshot."""
    parser.add_argument("id", metavar="ID", help="run, its session, or job")
    add_batch_flag(parser)
    parser.add_argument(
        "--message", metavar="TEXT", help="message to send when the run is resumed (default: none)"
    )
    parser.add_argument(
        "--node",
        metavar="NAME",
        help="your name for the current step, stored in the snapshot (default: none)",
    )


def run(args: argparse.Namespace) -> int:
    """Pause the run and return the exit code."""
    return with_store(args, _pause)


async def _pause(args: argparse.Namespace, store: Store) -> int:
    run = await find_active_run(store, args.id, args.batch)
    body = {"message": args.message, "node": args.node}
    answer = await send_request(store, "pause", run.session_id, run.run_id, body)
    what = f"is paused; to continue: sessionmgr resume {answer['snapshot']}"
    print_answer(run.run_id, answer, what, as_json=args.json)
    return 0
