"""SQL queries of `EventJournal`: sessions, runs and events; `journal` writes them."""

from __future__ import annotations

from heapq import merge
from typing import TYPE_CHECKING, Any, Final

from sessionmgr.store.errors import UnknownId
from sessionmgr.store.event_page import PrunedRange, paginate
from sessionmgr.store.id_prefix import CANDIDATES, single_match
from sessionmgr.store.rows import EventPage, EventRow, Page, StoredRun, StoredSession

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from sqlite3 import Connection

    from sessionmgr.store.contract import Kind

SESSION: Final = (
    "SELECT key, session_id, provider, created, closed, fence, last, coalesce(body, first_body)"
    " FROM sessions"
)
RUN: Final = (
    "SELECT runs.key, run_id, session_id, provider, status, first, runs.last, terminal, ended,"
    " runs.body FROM runs JOIN sessions ON sessions.key = runs.session"
)


class WhereClause:
    """Conditions joined by AND, and their parameters."""

    def __init__(self) -> None:
        self._conditions: list[str] = []
        self.values: list[object] = []

    def add(self, condition: str, *values: object) -> None:
        """Add a condition."""
        self._conditions.append(condition)
        self.values += values

    def add_in(self, column: str, values: Collection[str]) -> None:
        """Add the condition that a column is one of these."""
        self.add(f"{column} IN ({', '.join('?' * len(values))})", *values)

    def __str__(self) -> str:
        return f" WHERE {' AND '.join(self._conditions)}" if self._conditions else ""


def find_session(connection: Connection, session_id: str) -> tuple[int, int]:
    """Return the session's key and last number.

    Raises:
        UnknownId: There is no such session.
    """
    found = connection.execute(
        "SELECT key, last FROM sessions WHERE session_id = ?", (session_id,)
    ).fetchone()
    if found is None:
        raise UnknownId("session", session_id)
    key, last = found
    return key, last


def session(connection: Connection, session_id: str) -> StoredSession:
    """Return the stored session."""
    row = connection.execute(f"{SESSION} WHERE session_id = ?", (session_id,)).fetchone()
    if row is None:
        raise UnknownId("session", session_id)
    return _session(row)


def sessions(
    connection: Connection,
    *,
    provider: str | None = None,
    state: str | None = None,
    since: int | None = None,
    limit: int = 100,
    cursor: int | None = None,
) -> Page[StoredSession]:
    """Return sessions, the newest first."""
    where = WhereClause()
    if cursor is not None:
        where.add("key < ?", cursor)
    if provider is not None:
        where.add("provider = ?", provider)
    if since is not None:
        where.add("created >= ?", since)
    if state is not None:
        where.add("closed IS NULL" if state == "open" else "closed IS NOT NULL")
    rows = connection.execute(
        f"{SESSION}{where} ORDER BY key DESC LIMIT ?", (*where.values, limit + 1)
    ).fetchall()
    return Page(tuple(map(_session, rows[:limit])), _cursor(rows, limit))


def run(connection: Connection, run_id: str) -> StoredRun:
    """Return the stored run."""
    row = connection.execute(f"{RUN} WHERE run_id = ?", (run_id,)).fetchone()
    if row is None:
        raise UnknownId("run", run_id)
    return _run(row)


def runs(
    connection: Connection,
    *,
    session_id: str | None = None,
    statuses: Collection[str] | None = None,
    provider: str | None = None,
    limit: int = 100,
    cursor: int | None = None,
) -> Page[StoredRun]:
    """Return runs, the newest first."""
    where = WhereClause()
    if cursor is not None:
        where.add("runs.key < ?", cursor)
    if session_id is not None:
        where.add("runs.session = (SELECT key FROM sessions WHERE session_id = ?)", session_id)
    if provider is not None:
        where.add("provider = ?", provider)
    if statuses is not None:
        where.add_in("status", statuses)
        if set(statuses) <= {"pending", "running"}:  # few of many: an index contains all of them
            where.add("status IN ('pending', 'running')")
    rows = connection.execute(
        f"{RUN}{where} ORDER BY runs.key DESC LIMIT ?", (*where.values, limit + 1)
    ).fetchall()
    return Page(tuple(map(_run, rows[:limit])), _cursor(rows, limit))


def _session(row: Sequence[Any]) -> StoredSession:
    _, session_id, provider, created, closed, fence, last, body = row
    return StoredSession(
        session_id=session_id,
        provider=provider,
        state="open" if closed is None else "closed",
        created=created,
        closed=closed,
        fence=fence,
        last_seq=last,
        body=body,
    )


def _run(row: Sequence[Any]) -> StoredRun:
    _, run_id, session_id, provider, status, first, last, terminal, ended, body = row
    return StoredRun(
        run_id=run_id,
        session_id=session_id,
        provider=provider,
        status=status,
        first_seq=first,
        last_seq=last,
        terminal_seq=terminal,
        ended=ended,
        body=body,
    )


def _cursor(rows: Sequence[Sequence[Any]], limit: int) -> int | None:
    return rows[limit - 1][0] if len(rows) > limit else None


def resolve(connection: Connection, prefix: str, kind: Kind | None = None) -> str:
    """Return the one id that begins with `prefix`."""
    found: list[str] = []
    for name in ("session", "run", "snapshot"):
        if kind in (None, name):
            rows = connection.execute(
                f"SELECT {name}_id FROM {name}s WHERE {name}_id >= ? AND {name}_id < ?"
                f" ORDER BY {name}_id LIMIT ?",
                (prefix, prefix + "\U0010ffff", CANDIDATES + 1),
            )
            found += [row[0] for row in rows]
    return single_match(prefix, kind, found)


def events(
    connection: Connection,
    session_id: str,
    *,
    after: int = 0,
    until: int | None = None,
    run_id: str | None = None,
    types: Collection[str] | None = None,
    limit: int = 1000,
) -> EventPage:
    """Return events with numbers above `after`, up to `until`."""
    key, last = find_session(connection, session_id)
    end = last if until is None else min(until, last)
    wanted = WhereClause()
    low, high = max(after, 0), end
    if run_id is not None:
        found = connection.execute(
            "SELECT key, first, last FROM runs WHERE run_id = ? AND session = ?", (run_id, key)
        ).fetchone()
        if found is None or found[1] is None:
            return EventPage((), max(after, end), more=False)
        # A run's events are between its first and its last number.
        low, high = max(low, found[1] - 1), min(high, found[2])
        wanted.add("run = ?", found[0])
    if types is not None:
        wanted.add_in("type", types)
    rows = _rows(connection, key, low, high, wanted, limit)
    holes = _pruned_ranges(connection, key, low, high, wanted)
    first_hole = next(holes, None)
    if first_hole is None:
        return paginate(session_id, rows, limit=limit, end=max(after, end))
    items: Iterator[EventRow | PrunedRange] = merge(rows, _and_then(first_hole, holes), key=_number)
    return paginate(session_id, items, limit=limit, end=max(after, end))


def _rows(
    connection: Connection, key: int, low: int, high: int, wanted: WhereClause, limit: int
) -> Iterator[EventRow | PrunedRange]:
    conditions = str(wanted).replace(" WHERE ", " AND ", 1)
    cursor = connection.execute(
        "SELECT seq, run, type, body FROM events WHERE session = ? AND seq > ? AND seq <= ?"
        f"{conditions} ORDER BY seq LIMIT ?",
        (key, low, high, *wanted.values, limit + 1),
    )
    run_ids: dict[int | None, str | None] = {None: None}
    for seq, run, kind, body in cursor:
        if run not in run_ids:
            (run_ids[run],) = connection.execute(
                "SELECT run_id FROM runs WHERE key = ?", (run,)
            ).fetchone()
        yield EventRow(seq, run_ids[run], kind, body)


def _pruned_ranges(
    connection: Connection, key: int, low: int, high: int, wanted: WhereClause
) -> Iterator[PrunedRange]:
    conditions = str(wanted).replace(" WHERE ", " AND ", 1)
    # Pruned ranges do not overlap, so only the last that begins before the page can reach into it.
    cursor = connection.execute(
        "SELECT first, last FROM holes WHERE session = ? AND first <= ? AND last > ?"
        " AND first >= coalesce((SELECT max(first) FROM holes WHERE session = ?"
        f" AND first <= ? + 1), 0){conditions} ORDER BY first",
        (key, high, low, key, low, *wanted.values),
    )
    for first, last in cursor:
        yield PrunedRange(max(first, low + 1), min(last, high))


def _and_then(first: PrunedRange, rest: Iterator[PrunedRange]) -> Iterator[EventRow | PrunedRange]:
    yield first
    yield from rest


def _number(item: EventRow | PrunedRange) -> int:
    return item.seq if isinstance(item, EventRow) else item.first
