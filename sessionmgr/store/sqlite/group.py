"""Appends of many sessions, written by few statements.

Each statement is a turn at the interpreter's lock, for which the writer's thread waits while the
main thread is busy. So nearly all appends, which only add events to runs that are stored already,
are written together, and what is stored of their sessions and runs is remembered from one group to
the next. That is forgotten as soon as anything else has written to the file or a transaction was
rolled back.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, TypeAlias

from sessionmgr.model.status import TERMINAL_TYPES
from sessionmgr.store.admission import identity
from sessionmgr.store.row import Appended
from sessionmgr.store.sqlite import journal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from sqlite3 import Connection

    from sessionmgr.store.row import Append

_Statement: TypeAlias = "Callable[[int], str]"

TOGETHER: Final = 64
"""So many rows go in by one statement."""
REMEMBERED: Final = 20_000
"""So many sessions are remembered at most."""


class GroupWriter:
    """Writes groups of appends, in the writer's thread and within its transaction."""

    def __init__(self) -> None:
        self._known: dict[str, journal.Stored] = {}
        self._version: tuple[int, int] | None = None
        """The file's version and our own changes after the last group."""
        self._seen: int | None = None
        """The file's version at the last group: only others' commits change it."""
        self._others_wrote = False
        self._has_looked = False

    def forget(self) -> None:
        """Remember nothing: a transaction was rolled back."""
        self._known.clear()
        self._version = None

    def saw_no_others(self) -> bool:
        """Return whether a group was written since this was last asked, and no other's commit seen.

        Then whoever looks for what others have written need not look. A commit that came after the
        group is seen by the next one, or looked for by whoever asks when there was none.
        """
        has_looked, self._has_looked = self._has_looked, False
        if self._others_wrote:
            self._others_wrote = False
            return False
        return has_looked

    def look_again(self) -> None:
        """Have the next who asks look: what others have written was not passed on."""
        self._others_wrote = True

    def append_all(self, connection: Connection, appends: Sequence[Append]) -> list[Appended]:
        """Store all of these batches.

        Raises:
            AppendRefused: One of them is refused: then the transaction is to be rolled back.
        """
        (version,) = connection.execute("PRAGMA data_version").fetchone()
        self._others_wrote |= self._seen != version
        self._seen, self._has_looked = version, True
        if self._version != (version, connection.total_changes) or len(self._known) > REMEMBERED:
            self.forget()
        try:
            outcomes = self._append_all(connection, appends)
        except BaseException:
            self.forget()
            raise
        self._version = version, connection.total_changes
        return outcomes

    def _append_all(self, connection: Connection, appends: Sequence[Append]) -> list[Appended]:
        plain = _Plain(connection)
        outcomes: list[Appended] = []
        for append in appends:
            if _is_plain(append) and self._add(plain, append):
                outcomes.append(Appended(append.rows[-1].seq))
            else:
                plain.write()
                self._known.pop(append.session_id, None)
                outcomes.append(journal.append(connection, append))
        plain.write()
        return outcomes

    def _add(self, plain: _Plain, append: Append) -> bool:
        """Add a plain batch; False if it is to be looked at more closely."""
        known = self._known.get(append.session_id)
        if known is not None and plain.add(append, known):
            return True
        plain.write()  # what is looked up is to be there
        known = journal.find_stored(plain.connection, append)
        if known is None or any(
            facts.session_id != append.session_id for facts in known.facts.values()
        ):
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


class _Plain:
    """Events of several sessions, until they are written."""

    def __init__(self, connection: Connection) -> None:
        self.connection: Final = connection
        self._events: list[tuple[object, ...]] = []
        self._sessions: dict[int, int] = {}
        self._runs: dict[int, tuple[int, int]] = {}

    def add(self, append: Append, stored: journal.Stored) -> bool:
        """Add the events of a batch if they follow what is stored, and end no run."""
        seq = append.first
        if append.fence != stored.fence or seq != stored.last + 1 or not append.rows:
            return False
        session, keys, events = stored.session, stored.keys, self._events
        begun, bounds = len(events), dict[int, tuple[int, int]]()
        batch: str | None = identity(append)
        for row in append.rows:
            key = keys.get(row.run_id)
            if row.seq != seq or row.type in TERMINAL_TYPES or (key is None and row.run_id):
                del events[begun:]
                return False
            events.append((session, batch, seq, key, row.type, row.body))
            if key is not None:
                bounds[key] = (bounds[key][0] if key in bounds else seq), seq
            batch, seq = None, seq + 1
        for key, (first, last) in bounds.items():
            self._runs[key] = (self._runs[key][0] if key in self._runs else first), last
        self._sessions[session] = stored.last = seq - 1
        return True

    def write(self) -> None:
        """Write what was added."""
        if not self._events:
            return
        self._execute(_insert_events, self._events)
        runs = [(key, first, last) for key, (first, last) in self._runs.items()]
        self._execute(_update_runs, runs)
        self._execute(_update_sessions, list(self._sessions.items()))
        self._events, self._sessions, self._runs = [], {}, {}

    def _execute(self, statement: _Statement, rows: Sequence[tuple[object, ...]]) -> None:
        at, together = 0, TOGETHER
        while at < len(rows):
            while together > len(rows) - at:  # few lengths, so that the statements are prepared
                together //= 2
            values = [value for row in rows[at : at + together] for value in row]
            self.connection.execute(statement(together), values)
            at += together


@cache
def _insert_events(count: int) -> str:
    places = ", ".join(["(?, ?, ?, ?, ?, ?)"] * count)
    return f"INSERT INTO events (session, batch, seq, run, type, body) VALUES {places}"


@cache
def _update_runs(count: int) -> str:
    places = ", ".join(["(?, ?, ?)"] * count)
    return (
        "UPDATE runs SET first = coalesce(first, column2), last = column3"
        f" FROM (VALUES {places}) WHERE key = column1"
    )


@cache
def _update_sessions(count: int) -> str:
    places = ", ".join(["(?, ?)"] * count)
    return f"UPDATE sessions SET last = column2 FROM (VALUES {places}) WHERE key = column1"
