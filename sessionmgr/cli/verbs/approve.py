"""The verb `approve`: answer an approval request of a run, from any terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sessionmgr.cli.errors import CommandLineInvalid, NameAmbiguous, RemoteRequestFailed
from sessionmgr.cli.lookup import add_batch_flag
from sessionmgr.cli.open_questions import open_questions, question_with
from sessionmgr.cli.parser import one_of
from sessionmgr.cli.queries import live_leases, with_store
from sessionmgr.cli.send_request import find_active_run, send_request
from sessionmgr.cli.terminal.stdout import print_json, print_line
from sessionmgr.cli.terminal.table import format_labelled, terminal_width
from sessionmgr.store import UnknownId

if TYPE_CHECKING:
    import argparse

    from sessionmgr.cli.open_questions import OpenQuestion
    from sessionmgr.store import Store

HELP: Final = """\
Answer an open question of a run, and print the answer. ID is the question's number
(sessionmgr questions lists them) or its id (apr_…), or the run, the session or the batch
job that asks. Without ID, the only open question is answered. A job whose id is a number
needs --batch.

  sessionmgr approve 1 allow
  sessionmgr approve apr_4kkm deny --reason "not on a Friday\""""

INDENT: Final = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the id, the answer and its reason."""
    parser.add_argument(
        "id",
        nargs="?",
        metavar="ID",
        help="question, its number, or the run, session or job that asks (default: the only open "
        "question)",
    )
    add_batch_flag(parser)
    parser.add_argument(
        "answer", metavar="allow|deny", type=one_of("answer", ("allow", "deny")), help="answer"
    )
    parser.add_argument(
        "--reason", metavar="TEXT", help="reason to record and to send to the agent (default: none)"
    )


def run(args: argparse.Namespace) -> int:
    """Send the answer and return the exit code."""
    return with_store(args, _approve)


async def _approve(args: argparse.Namespace, store: Store) -> int:
    question = await _question(store, args.id, args.batch)
    run_id = question.run_id
    answer = await send_request(
        store,
        "approve",
        question.session_id,
        run_id,
        {"approval_id": question.id, "allow": args.answer == "allow", "detail": args.reason},
    )
    if not answer.get("answered"):
        raise RemoteRequestFailed(f"{run_id} has no open question; sessionmgr questions lists them")
    if args.json:
        print_json({"id": run_id, **answer, "question": question.id, "wants": question.wants})
        return 0
    what = "allowed" if args.answer == "allow" else "denied"
    for line in format_labelled(
        f"{run_id}:", f"{what} {question.wants}", indent=INDENT, width=terminal_width()
    ):
        print_line(line)
    return 0


async def _question(store: Store, text: str | None, batch: str | None) -> OpenQuestion:
    """Return the question that an argument refers to.

    Raises:
        UnknownId: No question has this id.
        NameAmbiguous: The argument matches several questions.
        RemoteRequestFailed: The run has no open question.
    """
    if text is not None and text.isdecimal() and batch is None:
        return await question_with(store, int(text))
    questions = await open_questions(store)
    if text is None:
        if not questions:
            raise CommandLineInvalid("approve: no question is open")
        return _only(questions, f"{len(questions)} questions are open")
    matching = [each for each in questions if each.id == text]
    if not matching and text.startswith("apr_"):
        matching = [each for each in questions if each.id.startswith(text)]
        if not matching:
            raise UnknownId("open question", text)
    if matching:
        return _only(matching, f"{len(matching)} questions begin with {text!r}")
    run = await find_active_run(store, text, batch)
    of_it = [each for each in questions if each.run_id == run.run_id]
    if not of_it:
        if run.session_id not in await live_leases(store, run.session_id):
            await send_request(
                store, "approve", run.session_id, run.run_id, {}
            )  # raises RunNotManaged
        raise RemoteRequestFailed(
            f"{run.run_id} has no open question; sessionmgr questions lists them"
        )
    return _only(of_it, f"{run.run_id} asks {len(of_it)} questions")


def _only(questions: list[OpenQuestion], why: str) -> OpenQuestion:
    if len(questions) == 1:
        return questions[0]
    listed = [f"{each.number}: {each.wants} ({each.id})" for each in questions]
    raise NameAmbiguous(why, listed, "answer one by its number")
