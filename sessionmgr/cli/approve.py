"""The verb `approve`: answer what a run has asked, from any terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sessionmgr.cli.lookup import add_batch_flag
from sessionmgr.cli.order import alive_run, give, tell
from sessionmgr.cli.parser import one_of
from sessionmgr.cli.stored import ALIVE, fold, with_store
from sessionmgr.errors import OrderRefused, UnknownId

if TYPE_CHECKING:
    import argparse

    from sessionmgr.store import Store, StoredRun

HELP: Final = """\
Answer the question that a run has asked and waits for. ID is that of the run, of its
session, or of the question itself (apr_…: sessionmgr show RUN tells it).

  sessionmgr approve run_7hq2 allow
  sessionmgr approve apr_4kkm deny --reason "not on a Friday\""""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take an id and the answer."""
    parser.add_argument("id", metavar="ID", help="a run, its session, a job, or a question")
    add_batch_flag(parser)
    parser.add_argument(
        "answer", metavar="allow|deny", type=one_of("answer", ("allow", "deny")), help="the answer"
    )
    parser.add_argument("--reason", metavar="TEXT", help="why, for the record and the agent")


def run(args: argparse.Namespace) -> int:
    """Answer it and return the exit code."""
    return with_store(args, _approve)


async def _approve(args: argparse.Namespace, store: Store) -> int:
    approval_id: str | None = None
    if args.id.startswith("apr_"):
        run, approval_id = await _who_asks(store, args.id)
    else:
        run = await alive_run(store, args.id, args.batch)
    answer = await give(
        store,
        "approve",
        run.session_id,
        run.run_id,
        {"approval_id": approval_id, "allow": args.answer == "allow", "detail": args.reason},
    )
    if not answer.get("answered"):
        raise OrderRefused(f"{run.run_id} asks nothing that could be answered now")
    what = "allowed" if args.answer == "allow" else "denied"
    tell(run.run_id, answer, what, as_json=args.json)
    return 0


async def _who_asks(store: Store, text: str) -> tuple[StoredRun, str]:
    """Return the run that has asked, and the whole id of its question.

    Raises:
        UnknownId: Nobody has.
    """
    cursor: int | None = None
    while True:
        page = await store.runs(statuses=ALIVE, cursor=cursor)
        for stored in page.rows:
            for approval_id in (await fold(store, stored)).open_approvals:
                if approval_id.startswith(text):
                    return stored, approval_id
        cursor = page.cursor
        if cursor is None:
            raise UnknownId("open question", text)
