"""The verb `questions`: list the approval requests that agents wait for."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from sessionmgr.cli.errors import StoreEmpty
from sessionmgr.cli.open_questions import open_questions
from sessionmgr.cli.queries import with_store
from sessionmgr.cli.terminal.format import format_age, pluralize
from sessionmgr.cli.terminal.format_path import home_path, short_path
from sessionmgr.cli.terminal.format_time import format_clock
from sessionmgr.cli.terminal.stdout import print_json, print_line, print_note
from sessionmgr.cli.terminal.table import format_labelled, terminal_width
from sessionmgr.model import parse_timestamp

if TYPE_CHECKING:
    import argparse

    from sessionmgr.cli.open_questions import OpenQuestion
    from sessionmgr.store import Store

HELP: Final = """\
List the approval requests that wait for an answer, oldest first: what each agent wants to
do, for which job or session, how long it has waited, and until when an answer is accepted.
A question keeps its number; sessionmgr approve takes the number or the id.

  sessionmgr questions
  sessionmgr approve 1 allow"""

INDENT: Final = 6


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add no arguments: the verb has none."""
    del parser


def run(args: argparse.Namespace) -> int:
    """List the questions and return the exit code."""
    try:
        return with_store(args, _list)
    except StoreEmpty as nothing:
        print_note(str(nothing))
        return 0


async def _list(args: argparse.Namespace, store: Store) -> int:
    questions = await open_questions(store)
    if args.json:
        print_json(*questions)
        return 0
    if not questions:
        print_note("No questions are open.")
    for question in questions:
        for line in question_lines(question, width=terminal_width(), now=time.time()):
            print_line(line)
    if questions:
        print_note(
            f"{pluralize(len(questions), 'open question')}; sessionmgr approve NUMBER allow|deny"
        )
    return 0


def question_lines(question: OpenQuestion, *, width: int | None, now: float) -> list[str]:
    """Return a question as lines: its number, the tool and its input, who asks, and until when."""
    job = f"job {question.job}" if question.job is not None else f"session {question.session_id}"
    batch = f" of {short_path(question.out)}" if question.out is not None else ""
    who = f"{question.provider} asks for {job}{batch} in {home_path(question.cwd)}"
    asked = parse_timestamp(question.asked_at)
    when = f"waits {format_age(now - asked)}"
    if question.until is not None:
        until = parse_timestamp(question.until)
        when += f", denied at {format_clock(until, now)} ({format_age(until - now)} left)"
    facts = [who, f"reason: {question.reason}" if question.reason else "", f"{when}, {question.id}"]
    lines = format_labelled(f"{question.number:>4}", question.wants, indent=INDENT, width=width)
    for fact in filter(None, facts):
        lines += format_labelled("", fact, indent=INDENT, width=width)
    return lines
