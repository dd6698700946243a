"""The verb `cancel`: end a run, or all runs of a session, whichever process owns them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sessionmgr.cli.lookup import add_batch_flag, resolve_id
from sessionmgr.cli.queries import ALIVE, with_store
from sessionmgr.cli.send_request import print_answer, send_request

if TYPE_CHECKING:
    import argparse

    from sessionmgr.store import Store

HELP: Final = """\
End a run, or all runs of a session or of a batch job, whichever process owns it.
Runs that have already ended are left unchanged; this is not an error.

  sessionmgr cancel run_7hq2 --reason "wrong branch\""""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the ids and the reason."""
    parser.add_argument("ids", nargs="+", metavar="ID", help="session, run or job")
    add_batch_flag(parser)
    parser.add_argument("--reason", metavar="TEXT", help="reason to record (default: none)")


def run(args: argparse.Namespace) -> int:
    """Cancel the runs and return the exit code."""
    return with_store(args, _cancel)


async def _cancel(args: argparse.Namespace, store: Store) -> int:
    found = [
        await resolve_id(store, text, "session", "run", batch=args.batch, is_on=True)
        for text in args.ids
    ]
    for kind, id in found:
        if kind == "run":
            run = await store.run(id)
            session_id, status = run.session_id, run.status
        else:
            alive = await store.runs(session_id=id, statuses=ALIVE, limit=1)
            session_id, status = id, "running" if alive.rows else "ended"
        if status not in ALIVE:
            print_answer(
                id,
                {"cancelled": 0},
                "has already ended" + (f" ({status})" if kind == "run" else ""),
                as_json=args.json,
            )
            continue
        answer = await send_request(store, "cancel", session_id, id, {"detail": args.reason})
        count = answer.get("cancelled")
        what = "is being cancelled" if count else "was ending already"
        print_answer(id, answer, what, as_json=args.json)
    return 0
