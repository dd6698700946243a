"""Open questions: the approvals that running agents wait for, numbered for `approve`.

A number stays with its question, and for a day after its last use no other question gets it: an
answer typed from an older list never reaches another question. The store keeps the numbers.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.cli.errors import CommandLineInvalid
from sessionmgr.cli.lookup import job_of_session
from sessionmgr.cli.queries import ALIVE, decode_session, live_leases, waits_for_answer
from sessionmgr.cli.terminal.event_line import command_text
from sessionmgr.cli.terminal.safe_text import escape_controls
from sessionmgr.model import (
    Json,
    Run,
    ToolApprovalRequested,
    decode_event,
    decode_run,
    format_timestamp,
    parse_timestamp,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from sessionmgr.store import Store, StoredRun

KEPT: Final = 24 * 60 * 60.0
"""Seconds for which the number of an answered question is not reused."""
_NOTE: Final = "question_numbers"


class OpenQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A question that waits for an answer; `wants` is the input of the tool, on one line."""

    number: int = 0
    id: str
    session_id: str
    run_id: str
    provider: str
    job: str | None
    out: str | None
    """The directory of the job's batch."""
    cwd: str
    tool_name: str
    tool_input: Json
    wants: str
    reason: str | None
    asked_at: str
    waits: float
    """Seconds since it was asked."""
    until: str | None
    """The time at which it is denied without an answer; None: unknown, or there is no limit."""


class _Number(msgspec.Struct, frozen=True, array_like=True):
    """A number that was given to a question, and when it was last listed."""

    number: int
    question: str
    at: float


_numbers: Final = msgspec.json.Decoder(list[_Number])


async def open_questions(store: Store) -> list[OpenQuestion]:
    """Return the open questions of all runs that a living process owns, the oldest first."""
    held = await live_leases(store)
    found: list[OpenQuestion] = []
    cursor: int | None = None
    while True:
        page = await store.runs(statuses=ALIVE, cursor=cursor)
        for stored in page.rows:
            if stored.session_id in held and waits_for_answer(stored):
                found += await _questions_of(store, stored)
        cursor = page.cursor
        if cursor is None:
            break
    found.sort(key=lambda each: (each.asked_at, each.id))
    return await _numbered(store, found)


async def requests_of(store: Store, run: Run) -> list[ToolApprovalRequested]:
    """Return the run's unanswered approval requests."""
    if not run.open_approvals:
        return []
    page = await store.events(run.session_id, run_id=run.id, types=["tool_approval_requested"])
    asked = [decode_event(row.body) for row in page.rows]
    return [
        event
        for event in asked
        if isinstance(event, ToolApprovalRequested) and event.approval_id in run.open_approvals
    ]


def what_it_wants(event: ToolApprovalRequested) -> str:
    """Return what an agent wants to do, on one line: the tool and its whole input."""
    what = event.tool_name or "a tool"
    if event.tool_input is not None:
        what += f": {command_text(event.tool_input)}"
    # An escape sequence is spelled out: dropping it could hide a part of the command.
    return " ".join(escape_controls(what).split())


def expiry_of(event: ToolApprovalRequested) -> float | None:
    """Return when a request is denied without an answer, in seconds since 1970."""
    return None if event.timeout is None else parse_timestamp(event.at) + event.timeout


async def _questions_of(store: Store, stored: StoredRun) -> list[OpenQuestion]:
    run = msgspec.structs.replace(
        decode_run(stored.body), id=stored.run_id, session_id=stored.session_id
    )
    session = decode_session((await store.session(stored.session_id)).body)
    of, now = job_of_session(session), time.time()
    questions: list[OpenQuestion] = []
    for event in await requests_of(store, run):
        until = expiry_of(event)
        questions.append(
            OpenQuestion(
                id=event.approval_id,
                session_id=stored.session_id,
                run_id=stored.run_id,
                provider=stored.provider,
                job=None if of is None else of.job,
                out=None if of is None or of.out is None else str(of.out),
                cwd=run.cwd or session.cwd,
                tool_name=event.tool_name,
                tool_input=event.tool_input,
                wants=what_it_wants(event),
                reason=event.reason,
                asked_at=event.at,
                waits=round(max(now - parse_timestamp(event.at), 0.0), 3),
                until=None if until is None else format_timestamp(until),
            )
        )
    return questions


# --- numbers -------------------------------------------------------------------------------------


async def question_with(store: Store, number: int) -> OpenQuestion:
    """Return the open question with a number.

    Raises:
        CommandLineInvalid: No open question has it.
    """
    known = {each.number: each.question for each in await _given(store)}
    for question in await open_questions(store):
        if question.number == number and known.get(number) == question.id:
            return question
    if number in known:
        raise CommandLineInvalid(
            f"approve: question {number} ({known[number]}) is no longer open; "
            "sessionmgr questions lists the open ones"
        )
    raise CommandLineInvalid(
        f"approve: no question has the number {number}; sessionmgr questions lists the open ones"
    )


async def _numbered(store: Store, questions: list[OpenQuestion]) -> list[OpenQuestion]:
    """Give each question its number, and record the numbers of new ones."""
    if not questions:
        return []
    now, given = time.time(), await _given(store)
    numbers = {each.question: each.number for each in given}
    new = [each.id for each in questions if each.id not in numbers]
    for id in new:
        numbers[id] = _lowest_free(numbers.values())
    listed = {each.id for each in questions}
    if new or any(now - each.at > KEPT / 2 for each in given if each.question in listed):
        numbers_in_use = [
            each for each in given if each.question not in listed and now - each.at < KEPT
        ]
        numbers_in_use += [_Number(numbers[id], id, now) for id in sorted(listed)]
        await store.put_meta(_NOTE, msgspec.json.encode(numbers_in_use))
    return [msgspec.structs.replace(each, number=numbers[each.id]) for each in questions]


def _lowest_free(taken: Collection[int]) -> int:
    return next(number for number in range(1, len(taken) + 2) if number not in taken)


async def _given(store: Store) -> list[_Number]:
    """Return the recorded numbers."""
    body = await store.meta(_NOTE)
    try:
        return [] if body is None else _numbers.decode(body)
    except msgspec.MsgspecError:  # a later version may record them differently
        return []
