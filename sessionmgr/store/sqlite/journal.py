"""Writing sessions, runs and events."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import TYPE_CHECKING, Final

from sessionmgr.errors import IdTaken, UnknownId
from sessionmgr.store.admission import (
    DELTAS,
    RunFacts,
    check_fence,
    check_runs,
    endings,
    identity,
    is_duplicate,
    named_runs,
)
from sessionmgr.store.row import Append, Appended, LedgerRow, NewSession
from sessionmgr.store.sqlite.shelf import put_blob, put_snapshot

if TYPE_CHECKING:
    from collections.abc import Mapping
    from sqlite3 import Connection

TOGETHER: Final = 64
"""So many events go in by one statement."""
PRUNED_AT_ONCE: Final = 2000
PRUNED_RUNS: Final = 50
"""So many rows, of so many runs, one step of `prune` drops at once; appends go in between."""


def create_session(connection: Connection, session: NewSession) -> None:
    """Store a new session, unless the very same is there."""
    made = connection.execute(
        "INSERT INTO sessions (session_id, provider, created, fence, last, first_body) VALUES"
        " (?, ?, ?, coalesce((SELECT fence FROM leases WHERE name = ?), 0), 0, ?)"
        " ON CONFLICT (session_id) DO NOTHING",
        (session.session_id, session.provider, session.at, session.session_id, session.body),
    )
    if made.rowcount:
        return
    found = connection.execute(
        "SELECT provider, created, first_body FROM sessions WHERE session_id = ?",
        (session.session_id,),
    ).fetchone()
    if found != (session.provider, session.at, session.body):
        raise IdTaken("session", session.session_id)


def append(connection: Connection, append: Append) -> Appended:
    """Store a batch, or refuse it before anything has changed."""
    ends = endings(append)
    if append.new_session is not None:
        create_session(connection, append.new_session)
    stored = find_stored(connection, append)
    if stored is None:
        raise UnknownId("session", append.session_id)
    session, last, keys = stored.session, stored.last, stored.keys
    check_fence(append, stored.fence)
    if is_duplicate(append, last, _begun(connection, session, append.first, last)):
        return Appended(append.rows[-1].seq, duplicate=True)
    check_runs(append, ends, stored.facts)
    for data in append.blobs:
        put_blob(connection, hashlib.sha256(data).hexdigest(), data)
    for snapshot in append.snapshots:
        put_snapshot(connection, snapshot)
    _write_runs(connection, append, session, keys, ends)
    _write_events(connection, append, session, keys)
    connection.execute(
        "UPDATE sessions SET last = ?, fence = ?, body = coalesce(?, body),"
        " closed = coalesce(CASE WHEN ? THEN NULL ELSE closed END, ?) WHERE key = ?",
        (
            *(append.rows[-1].seq, append.fence, append.session, append.reopens),
            *(append.at if append.closes else None, session),
        ),
    )
    if append.ledger:
        _book(connection, append, session, keys)
    return Appended(append.rows[-1].seq)


def _begun(connection: Connection, session: int, first: int, last: int) -> str | None:
    """Return the identity of the batch that begins with a number, if one does."""
    if first > last:
        return None
    found = connection.execute(
        "SELECT batch FROM events WHERE session = ? AND seq = ?", (session, first)
    ).fetchone()
    return None if found is None else found[0]


class Stored:
    """What is stored of an append's session, and of the runs that it names."""

    __slots__ = ("facts", "fence", "keys", "last", "session")

    def __init__(self, session: int, fence: int, last: int) -> None:
        self.session: Final = session
        self.fence: Final = fence
        self.last = last
        self.keys: Final[dict[str | None, int | None]] = {None: None}
        self.facts: Final[dict[str, RunFacts]] = {}


def find_stored(connection: Connection, append: Append) -> Stored | None:
    """Look for an append's session, and for the runs that it names."""
    # A statement is two turns at the interpreter's lock, and most appends name one run: that one
    # is asked for together with the session.
    named = named_runs(append)
    usual = named.pop() if named else None
    found = connection.execute(
        "SELECT sessions.key, fence, sessions.last, runs.key, status, session"
        " FROM sessions LEFT JOIN runs ON run_id = ? WHERE session_id = ?",
        (usual, append.session_id),
    ).fetchone()
    if found is None:
        return None
    session, fence, last, *run = found
    stored = Stored(session, fence, last)
    if usual is not None and run[0] is not None:
        _note(connection, append, stored, usual, *run)
    for run_id in named:
        row = connection.execute(
            "SELECT key, status, session FROM runs WHERE run_id = ?", (run_id,)
        ).fetchone()
        if row is not None:
            _note(connection, append, stored, run_id, *row)
    return stored


def _note(
    connection: Connection,
    append: Append,
    stored: Stored,
    run_id: str,
    key: int,
    status: str,
    owner: int,
) -> None:
    session_id = append.session_id
    if owner != stored.session:
        (session_id,) = connection.execute(
            "SELECT session_id FROM sessions WHERE key = ?", (owner,)
        ).fetchone()
    stored.keys[run_id] = key
    stored.facts[run_id] = RunFacts(session_id, status)


def _write_runs(
    connection: Connection,
    append: Append,
    session: int,
    keys: dict[str | None, int | None],
    ends: Mapping[str, int],
) -> None:
    bounds = spans(append)
    for run in append.runs:
        key = keys.get(run.run_id)
        end = ends.get(run.run_id)
        ended = None if end is None else append.at
        first, last = bounds.pop(run.run_id, (None, None))
        if key is None:
            keys[run.run_id] = connection.execute(
                "INSERT INTO runs (run_id, session, status, first, last, terminal, ended, body)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (run.run_id, session, run.status, first, last, end, ended, run.body),
            ).lastrowid
        else:
            connection.execute(
                "UPDATE runs SET status = ?, first = coalesce(first, ?), last = coalesce(?, last),"
                " terminal = coalesce(terminal, ?), ended = coalesce(ended, ?), body = ?"
                " WHERE key = ?",
                (run.status, first, last, end, ended, run.body, key),
            )
    for run_id, (first, last) in bounds.items():
        connection.execute(
            "UPDATE runs SET first = coalesce(first, ?), last = ? WHERE key = ?",
            (first, last, keys[run_id]),
        )


def _write_events(
    connection: Connection, append: Append, session: int, keys: Mapping[str | None, int | None]
) -> None:
    for at in range(0, len(append.rows), TOGETHER):
        rows = append.rows[at : at + TOGETHER]
        values: list[int | str | bytes | None] = []
        for row in rows:
            values += (session, row.seq, keys[row.run_id], row.type, row.body)
        if not at:
            values.insert(1, identity(append))
        connection.execute(_insert_events(len(rows), begins=not at), values)


@cache
def _insert_events(count: int, *, begins: bool) -> str:
    # Only the first row names the batch; an argument costs more than a NULL in the statement.
    row = "(?, NULL, ?, ?, ?, ?)"
    places = ", ".join(["(?, ?, ?, ?, ?, ?)" if begins else row, *[row] * (count - 1)])
    return f"INSERT INTO events (session, batch, seq, run, type, body) VALUES {places}"


def spans(append: Append) -> dict[str, tuple[int, int]]:
    """Return the first and the last number of each run's events in the batch."""
    run_ids = {row.run_id for row in append.rows}
    if len(run_ids) == 1:  # as most batches have it
        (run_id,) = run_ids
        return {} if run_id is None else {run_id: (append.first, append.rows[-1].seq)}
    last = {row.run_id: row.seq for row in append.rows}
    first = {row.run_id: row.seq for row in reversed(append.rows)}
    return {run_id: (first[run_id], last[run_id]) for run_id in last if run_id is not None}


def _book(
    connection: Connection, append: Append, session: int, keys: Mapping[str | None, int | None]
) -> None:
    columns = LedgerRow.__struct_fields__[1:]
    places = ", ".join("?" * (len(columns) + 2))
    connection.executemany(
        f"INSERT INTO ledger (session, run, {', '.join(columns)}) VALUES ({places})",
        [
            (session, keys[row.run_id], *(getattr(row, column) for column in columns))
            for row in append.ledger
        ],
    )


def prune_some(
    connection: Connection, before: int, session_id: str | None
) -> dict[int, tuple[int, int]] | None:
    """Drop some deltas of ended runs; return how many and how large by run, or None: all is done.

    One run may take several steps.
    """
    runs = connection.execute(
        "SELECT key, session, pruned, last FROM runs"
        " WHERE ended IS NOT NULL AND pruned < last AND ended < ? AND"
        " (? IS NULL OR session = (SELECT key FROM sessions WHERE session_id = ?)) LIMIT ?",
        (before, session_id, session_id, PRUNED_RUNS),
    ).fetchall()
    dropped: dict[int, tuple[int, int]] = {}
    total = 0
    for key, session, pruned, last in runs:
        sizes = _prune_run(connection, key, session, pruned, last)
        if sizes:
            dropped[key] = len(sizes), sum(sizes)
        total += len(sizes)
        if total >= PRUNED_AT_ONCE:
            break
    return dropped if runs else None


def _prune_run(connection: Connection, key: int, session: int, pruned: int, last: int) -> list[int]:
    rows = connection.execute(
        "SELECT id, seq, type, length(body) FROM events WHERE session = ? AND seq > ? AND seq <= ?"
        " AND run = ? AND type IN (?, ?, ?) ORDER BY seq LIMIT ?",
        (session, pruned, last, key, *DELTAS, PRUNED_AT_ONCE),
    ).fetchall()
    connection.executemany("DELETE FROM events WHERE id = ?", [(row[0],) for row in rows])
    holes: list[tuple[int, int, str]] = []
    for _, seq, kind, _ in rows:
        if holes and holes[-1][1] + 1 == seq and holes[-1][2] == kind:
            holes[-1] = (holes[-1][0], seq, kind)
        else:
            holes.append((seq, seq, kind))
    connection.executemany(
        "INSERT INTO holes (session, first, last, run, type) VALUES (?, ?, ?, ?, ?)",
        [(session, first, end, key, kind) for first, end, kind in holes],
    )
    looked_at = rows[-1][1] if len(rows) == PRUNED_AT_ONCE else last
    connection.execute("UPDATE runs SET pruned = ? WHERE key = ?", (looked_at, key))
    return [row[3] for row in rows]
