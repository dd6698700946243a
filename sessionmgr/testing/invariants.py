"""A checker of the invariants of stored records, independent of the code that wrote them.

It reads only the stored bytes, with code of its own; it uses the manager's fold only to compare a
run's record with its events.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.model import TERMINAL, Run, decode_event, decode_run, reduce_all

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sessionmgr.model import Json
    from sessionmgr.store import CostTotals, EventRow, Store, StoredRun, StoredSession

_END: Final = {
    "run_completed": "completed",
    "run_failed": "failed",
    "run_cancelled": "cancelled",
    "run_timed_out": "timed_out",
    "run_rate_limited": "rate_limited",
    "run_paused": "paused",
}
_FATES: Final = {
    None: {"queued", "sent", "dropped"},
    "queued": {"sent", "dropped", "unknown"},
    "sent": {"dropped", "unknown"},  # a message may be dropped after it was marked as sent
    "dropped": set[str](),
    "unknown": {"sent", "dropped"},
}
_TOKENS: Final = ("input", "cached_input", "cache_write", "output", "reasoning")


async def broken_laws(store: Store, *, settled: bool = True) -> list[str]:
    """Return the violations of invariants in a store, one sentence each.

    The invariants: numbers are contiguous; a run ends once, and its stored status is that of its
    end; its record equals the fold of its events; usage is booked once; a message is sent or
    dropped, not both; an answer has a question, and each start has an end.

    Args:
        store: The store.
        settled: Whether all runs must have ended; by default they must.
    """
    found: list[str] = []
    of_session: dict[str, dict[str, StoredRun]] = defaultdict(dict)
    for run in await _runs(store):
        of_session[run.session_id][run.run_id] = run
    for session in await _sessions(store):
        rows = await _events(store, session.session_id)
        runs = of_session[session.session_id]
        booked = await store.costs(list(runs))
        found += _numbers(session, rows)
        of_run: dict[str, list[EventRow]] = defaultdict(list)
        for row in rows:
            if row.run_id is not None:
                of_run[row.run_id].append(row)
        found += [f"{each} has events but no record" for each in of_run.keys() - runs.keys()]
        for run in runs.values():
            found += _run(run, of_run[run.run_id], settled=settled)
            found += _ledger(run.run_id, booked.get(run.run_id), of_run[run.run_id])
        found += _turns(rows)
    return found


# --- reading ------------------------------------------------------------------------------------


async def _sessions(store: Store) -> list[StoredSession]:
    page = await store.sessions()
    rows = list(page.rows)
    while page.cursor is not None:
        page = await store.sessions(cursor=page.cursor)
        rows += page.rows
    return rows


async def _runs(store: Store) -> list[StoredRun]:
    page = await store.runs()
    rows = list(page.rows)
    while page.cursor is not None:
        page = await store.runs(cursor=page.cursor)
        rows += page.rows
    return rows


async def _events(store: Store, session_id: str) -> list[EventRow]:
    rows: list[EventRow] = []
    after = 0
    while True:
        page = await store.events(session_id, after=after)
        rows += page.rows
        after = page.last
        if not page.more:
            return rows


def _event_of(row: EventRow) -> dict[str, Json]:
    said: Json = msgspec.json.decode(row.body)
    assert isinstance(said, dict)
    return said


# --- the invariants -----------------------------------------------------------------------------


def _numbers(session: StoredSession, rows: list[EventRow]) -> Iterator[str]:
    numbers = [row.seq for row in rows]
    if numbers != list(range(1, session.last_seq + 1)):
        yield f"{session.session_id}: events {numbers}, but last_seq is {session.last_seq}"
    for row in rows:
        said = _event_of(row)
        contained = (said.get("seq"), said.get("run_id"), said.get("type"), said.get("session_id"))
        if contained != (row.seq, row.run_id, row.type, session.session_id):
            yield f"{session.session_id}: event {row.seq} contains {contained}"
    if rows and rows[0].type != "session_created":
        yield f"{session.session_id} begins with {rows[0].type}"
    created = sum(row.type == "session_created" for row in rows)
    closed = sum(row.type == "session_closed" for row in rows)
    reopened = sum(row.type == "session_reopened" for row in rows)
    if created != 1 or closed - reopened not in {0, 1}:
        yield (
            f"{session.session_id} was created {created} times, closed {closed} times and "
            f"reopened {reopened} times"
        )
    yield from _while_closed(session.session_id, rows)


def _while_closed(session_id: str, rows: list[EventRow]) -> Iterator[str]:
    """Yield violations: a run started in a closed session."""
    is_closed = False
    for row in rows:
        if row.type in {"session_closed", "session_reopened"}:
            is_closed = row.type == "session_closed"
        elif row.type == "run_started" and is_closed:
            yield f"{session_id}: {row.run_id} starts while the session is closed"


def _run(run: StoredRun, rows: list[EventRow], *, settled: bool) -> Iterator[str]:
    name = run.run_id
    ends = [row for row in rows if row.type in _END]
    wanted = _END[ends[0].type] if ends else None
    if len(ends) > 1:
        yield f"{name} ends {len(ends)} times: {[row.type for row in ends]}"
    if wanted is None and run.status not in {"pending", "running"}:
        yield f"{name} is {run.status}, but has no terminal event"
    if wanted is not None and run.status != wanted:
        yield f"{name} is {run.status}, but its events say {wanted}"
    if settled and wanted is None:
        yield f"{name} has no end: it is {run.status}"
    if sum(row.type == "run_started" for row in rows) > 1:
        yield f"{name} starts more than once"
    record, folded = decode_run(run.body), _check_reduced_record(run, rows)
    if record.status != run.status:
        yield f"{name}: its record says {record.status}, but its row {run.status}"
    if _comparable(record) != _comparable(folded):
        yield f"{name}: its record differs from the fold of its events: {record} != {folded}"
    yield from _used(name, record, rows)
    yield from _messages(name, rows, settled=settled)
    yield from _questions(name, rows)


def _check_reduced_record(run: StoredRun, rows: list[EventRow]) -> Run:
    new = Run(id=run.run_id, session_id=run.session_id, provider=run.provider)
    return reduce_all(new, [decode_event(row.body) for row in rows])


def _comparable(run: Run) -> Run:
    """Leave out the preview's progress, for which a record is not written again."""
    if run.status in TERMINAL:
        return msgspec.structs.replace(run, partial=(), partial_id=None, last_seq=0)
    return msgspec.structs.replace(run, partial=(), partial_id=None, last_seq=0, text="")


def _used(name: str, record: Run, rows: list[EventRow]) -> Iterator[str]:
    tokens: Counter[str] = Counter()
    for row in rows:
        if row.type in _END:
            break
        if row.type == "token_usage_updated":
            usage = _event_of(row).get("usage")
            assert isinstance(usage, dict)
            tokens.update({key: int(str(usage.get(key, 0))) for key in _TOKENS})
    recorded = {key: getattr(record.usage, key) for key in _TOKENS}
    if recorded != {key: tokens[key] for key in _TOKENS}:
        yield f"{name}: its events report usage {dict(tokens)}, but its record {recorded}"


def _ledger(run_id: str, booked: CostTotals | None, rows: list[EventRow]) -> Iterator[str]:
    reported: Counter[str] = Counter()
    for row in rows:
        if row.type != "token_usage_updated":
            continue
        said = _event_of(row)
        usage, cost = said.get("usage"), said.get("cost")
        assert isinstance(usage, dict)
        reported.update({key: int(str(usage.get(key, 0))) for key in _TOKENS})
        reported["rows"] += 1
        if isinstance(cost, int | float):
            reported["nano_usd"] += round(cost * 10**9)
    names = (*_TOKENS, "rows", "nano_usd")
    ledger = {key: getattr(booked, key) if booked else 0 for key in names}
    if ledger != {key: reported[key] for key in names}:
        yield f"{run_id}: the ledger has {ledger}, but its events say {dict(reported)}"


def _messages(name: str, rows: list[EventRow], *, settled: bool) -> Iterator[str]:
    states: dict[str, str] = {}
    for row in rows:
        if row.type != "message_sent":
            continue
        said = _event_of(row)
        message, state = str(said["message_id"]), str(said["state"])
        if state not in _FATES[states.get(message)]:
            yield f"{name}: message {message} is {state} after {states.get(message)}"
        states[message] = state
    waiting = [message for message, state in states.items() if state == "queued"]
    if settled and waiting:
        yield f"{name}: messages without an outcome: {waiting}"


def _questions(name: str, rows: list[EventRow]) -> Iterator[str]:
    asked: Counter[str] = Counter()
    for row in rows:
        if row.type == "tool_approval_requested":
            asked[str(_event_of(row)["approval_id"])] += 1
        elif row.type in {"tool_approval_granted", "tool_approval_denied"}:
            question = str(_event_of(row)["approval_id"])
            if not asked[question]:
                yield f"{name}: {row.type} answers no open question: {question}"
            asked[question] -= 1


def _turns(rows: list[EventRow]) -> Iterator[str]:
    """Yield violations: runs of a session overlap."""
    running: set[str] = set()
    for row in rows:
        if row.run_id is None:
            continue
        if row.type == "run_started":
            if running:
                yield f"{row.run_id} starts while {', '.join(running)} is running"
            running.add(row.run_id)
        elif row.type in _END:
            running.discard(row.run_id)
