"""Writing sessions, runs and events: the appends of many sessions with few statements.

After each statement the writer's thread waits for the interpreter's lock while the main thread is
busy. So nearly all appends, which only add events to runs that are stored already, are written
together, and the stored state of their sessions and runs is cached from one group to the next. The
cache is cleared as soon as anything else has written to the file or a transaction was rolled back.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import TYPE_CHECKING, Final

from sessionmgr.model import TERMINAL_TYPES
from sessionmgr.store.append_checks import (
    KnownRun,
    append_runs,
    batch_identity,
    check_fence,
    check_runs,
    is_duplicate,
    terminal_events,
)
from sessionmgr.store.errors import IdTaken, UnknownId
from sessionmgr.store.rows import Append, AppendResult, LedgerRow, NewSession
from sessionmgr.store.sqlite.blobs import put_blob, put_snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from sqlite3 import Connection

TOGETHER: Final = 64
"""Maximum number of rows that one statement inserts."""
REMEMBERED: Final = 20_000
"""Maximum number of sessions in the cache."""


class GroupWriter:
    """Writer of groups of appends, in the writer's thread and within its transaction."""

    def __init__(self) -> None:
        self._known: dict[str, StoredState] = {}
        self._version: tuple[int, int] | None = None
        """The file's version and our own changes after the last group."""
        self._seen: int | None = None
        """The file's version at the last group: only others' commits change it."""
        self._others_wrote = False
        self._has_looked = False

    def clear_cache(self) -> None:
        """Clear the cache: a transaction was rolled back."""
        self._known.clear()
        self._version = None

    def saw_no_other_commits(self) -> bool:
        """Return whether a group was written since the last call without seeing others' commits.

        If so, the poller need not look for other processes' commits. A commit after the group is
        seen by the next group, or by the poller if there is none.
        """
        has_looked, self._has_looked = self._has_looked, False
        if self._others_wrote:
            self._others_wrote = False
            return False
        return has_looked

    def mark_unseen_commits(self) -> None:
        """Let the next call return False: the poller must look for other processes' commits."""
        self._others_wrote = True

    def append_all(self, connection: Connection, appends: Sequence[Append]) -> list[AppendResult]:
        """Store all of these batches.

        Raises:
            AppendRefused: One of them is refused: the transaction must be rolled back.
        """
        (version,) = connection.execute("PRAGMA data_version").fetchone()
        self._others_wrote |= self._seen != version
        self._seen, self._has_looked = version, True
        if self._version != (version, connection.total_changes) or len(self._known) > REMEMBERED:
            self.clear_cache()
        try:
            outcomes = self._append_all(connection, appends)
        except BaseException:
            self.clear_cache()
            raise
        self._version = version, connection.total_changes
        return outcomes

    def _append_all(self, connection: Connection, appends: Sequence[Append]) -> list[AppendResult]:
        plain = _PlainBatches(connection)
        outcomes: list[AppendResult] = []
        for append in appends:
            if _is_plain(append) and self._add(plain, append):
                outcomes.append(AppendResult(append.rows[-1].seq))
            else:
                plain.write()
                self._known.pop(append.session_id, None)
                outcomes.append(append_one(connection, append))
        plain.write()
        return outcomes

    def _add(self, plain: _PlainBatches, append: Append) -> bool:
        """Add a plain batch; return False if it needs the complete checks."""
        known = self._known.get(append.session_id)
        if known is not None and plain.add(append, known):
            return True
        plain.write()  # the lookup must find these rows
        known = find_stored(
            plain.connection, append.session_id, {row.run_id for row in append.rows}
        )
        if known is None or any(run.session_id != append.session_id for run in known.runs.values()):
            return False
        self._known[append.session_id] = known
        return plain.add(append, known)


def _is_plain(append: Append) -> bool:
    """Return whether a batch only adds events."""
    return not (
        append.runs
        or append.ledger
        or append.session is not None
        or append.new_session is not None
        or append.closes
        or append.reopens
        or append.blobs
        or append.snapshots
    )


class _PlainBatches:
    """Events of several sessions, until they are written.

    The values of all rows are in one list, and no row is a tuple: several hundred tuples at a time
    would start the garbage collector once a group, which takes longer than the rest of this class.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection: Final = connection
        self._events: list[object] = []
        self._sessions: dict[int, int] = {}
        self._lasts: dict[int, int] = {}
        """Last number of each run."""
        self._firsts: dict[int, int] = {}
        """First number of each run among these events."""

    def add(self, append: Append, stored: StoredState) -> bool:
        """Add the events of a batch if they follow what is stored, and end no run."""
        seq, keys = append.first, stored.keys
        if append.fence != stored.fence or seq != stored.last + 1 or not append.rows:
            return False
        for row in append.rows:
            if row.seq != seq or row.type in TERMINAL_TYPES or row.run_id not in keys:
                return False
            seq += 1
        session, events = stored.session, self._events
        batch: str | None = batch_identity(append.fence, len(append.rows), append.batch)
        for row in append.rows:
            key = keys[row.run_id]
            events += (session, batch, row.seq, key, row.type, row.body)
            if key is not None:
                self._lasts[key] = row.seq
                self._firsts.setdefault(key, row.seq)
            batch = None
        self._sessions[session] = stored.last = seq - 1
        return True

    def write(self) -> None:
        """Write the added events."""
        if not self._events:
            return
        self._execute(_insert_events, self._events, 6)
        runs: list[object] = []
        for key, last in self._lasts.items():
            runs += (self._firsts[key], last, key)
        self._execute(_update_runs, runs, 3)
        sessions: list[object] = []
        for key, last in self._sessions.items():
            sessions += (last, key)
        self._execute(_update_sessions, sessions, 2)
        self._events, self._sessions, self._lasts, self._firsts = [], {}, {}, {}

    def _execute(self, statement: Callable[[int], str], values: list[object], columns: int) -> None:
        at, together = 0, TOGETHER
        while at < len(values):
            while together * columns > len(values) - at:  # few lengths: statements are reused
                together //= 2
            end = at + together * columns
            self.connection.execute(statement(together), values[at:end])
            at = end


def create_session(connection: Connection, session: NewSession) -> None:
    """Store a new session, unless the same one is stored."""
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


def append_one(connection: Connection, append: Append) -> AppendResult:
    """Store a batch, or refuse it before anything has changed."""
    ends = terminal_events(append)
    if append.new_session is not None:
        create_session(connection, append.new_session)
    stored = find_stored(connection, append.session_id, append_runs(append))
    if stored is None:
        raise UnknownId("session", append.session_id)
    session, last, keys = stored.session, stored.last, stored.keys
    check_fence(append, stored.fence)
    if is_duplicate(append, last, _batch_starting_at(connection, session, append.first, last)):
        return AppendResult(append.rows[-1].seq, duplicate=True)
    check_runs(append, ends, stored.runs)
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
        _insert_usage(connection, append, session, keys)
    return AppendResult(append.rows[-1].seq)


def _batch_starting_at(connection: Connection, session: int, first: int, last: int) -> str | None:
    """Return the identity of the batch that begins with a number, if there is one."""
    if first > last:
        return None
    found = connection.execute(
        "SELECT batch FROM events WHERE session = ? AND seq = ?", (session, first)
    ).fetchone()
    return None if found is None else found[0]


class StoredState:
    """Stored state of an append's session, and of the runs that it names."""

    __slots__ = ("fence", "keys", "last", "runs", "session")

    def __init__(self, session: int, fence: int, last: int) -> None:
        self.session: Final = session
        self.fence: Final = fence
        self.last = last
        self.keys: Final[dict[str | None, int | None]] = {None: None}
        self.runs: Final[dict[str, KnownRun]] = {}


def find_stored(
    connection: Connection, session_id: str, named: Collection[str | None]
) -> StoredState | None:
    """Return the stored state of a session, and of the runs that its append names."""
    # Most appends name one run, which the same statement reads with the session.
    run_ids = [each for each in named if each is not None]
    usual = run_ids.pop() if run_ids else None
    found = connection.execute(
        "SELECT sessions.key, fence, sessions.last, run_id, runs.key, status, session"
        " FROM sessions LEFT JOIN runs ON run_id = ? WHERE session_id = ?",
        (usual, session_id),
    ).fetchone()
    if found is None:
        return None
    session, fence, last, *run = found
    stored = StoredState(session, fence, last)
    known = [] if run[0] is None else [run]
    for run_id in run_ids:
        known += connection.execute(
            "SELECT run_id, key, status, session FROM runs WHERE run_id = ?", (run_id,)
        )
    for run_id, key, status, owner in known:
        owned_by = session_id
        if owner != session:
            (owned_by,) = connection.execute(
                "SELECT session_id FROM sessions WHERE key = ?", (owner,)
            ).fetchone()
        stored.keys[run_id] = key
        stored.runs[run_id] = KnownRun(owned_by, status)
    return stored


def _write_runs(
    connection: Connection,
    append: Append,
    session: int,
    keys: dict[str | None, int | None],
    ends: Mapping[str, int],
) -> None:
    bounds = _seq_ranges(append)
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
    batch: str | None = batch_identity(append.fence, len(append.rows), append.batch)
    for at in range(0, len(append.rows), TOGETHER):
        rows = append.rows[at : at + TOGETHER]
        values: list[int | str | bytes | None] = []
        for row in rows:
            values += (session, batch, row.seq, keys[row.run_id], row.type, row.body)
            batch = None
        connection.execute(_insert_events(len(rows)), values)


def _seq_ranges(append: Append) -> dict[str, tuple[int, int]]:
    """Return the first and the last number of each run's events in the batch."""
    run_ids = {row.run_id for row in append.rows}
    if len(run_ids) == 1:  # the usual case
        (run_id,) = run_ids
        return {} if run_id is None else {run_id: (append.first, append.rows[-1].seq)}
    last = {row.run_id: row.seq for row in append.rows}
    first = {row.run_id: row.seq for row in reversed(append.rows)}
    return {run_id: (first[run_id], last[run_id]) for run_id in last if run_id is not None}


def _insert_usage(
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


@cache
def _insert_events(count: int) -> str:
    places = ", ".join(["(?, ?, ?, ?, ?, ?)"] * count)
    return f"INSERT INTO events (session, batch, seq, run, type, body) VALUES {places}"


@cache
def _update_runs(count: int) -> str:
    if count == 1:  # a single session
        return "UPDATE runs SET first = coalesce(first, ?), last = ? WHERE key = ?"
    places = ", ".join(["(?, ?, ?)"] * count)
    return (
        "UPDATE runs SET first = coalesce(first, column1), last = column2"
        f" FROM (VALUES {places}) WHERE key = column3"
    )


@cache
def _update_sessions(count: int) -> str:
    if count == 1:
        return "UPDATE sessions SET last = ? WHERE key = ?"
    places = ", ".join(["(?, ?)"] * count)
    return f"UPDATE sessions SET last = column1 FROM (VALUES {places}) WHERE key = column2"
