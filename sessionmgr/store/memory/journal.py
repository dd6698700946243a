"""Sessions, runs and events in dictionaries."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Literal, TypeVar

from trio.lowlevel import checkpoint

from sessionmgr.store.append_checks import (
    DELTAS,
    KnownRun,
    append_runs,
    batch_identity,
    check_fence,
    check_runs,
    is_duplicate,
    terminal_events,
)
from sessionmgr.store.change_notifier import ChangeNotifier
from sessionmgr.store.errors import IdTaken, UnknownId
from sessionmgr.store.event_page import PrunedRange, paginate
from sessionmgr.store.id_prefix import single_match
from sessionmgr.store.image_references import IMAGE, image_blobs
from sessionmgr.store.memory.state import MemoryRun, MemorySession, PrunedEvent
from sessionmgr.store.rows import (
    Append,
    AppendResult,
    EventPage,
    EventRow,
    LedgerRow,
    NewSession,
    Page,
    PruneResult,
    RemovalResult,
    SnapshotRow,
    StoredRun,
    StoredSession,
    append_result,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from sessionmgr.store.contract import Kind

T = TypeVar("T")


class MemoryJournal:
    """Journal part of the memory store: sessions, runs and events."""

    def __init__(self) -> None:
        self._notifier = ChangeNotifier()
        self._sessions: dict[str, MemorySession] = {}
        self._runs: dict[str, MemoryRun] = {}
        self._snapshots: dict[str, SnapshotRow] = {}
        self._ledger: list[tuple[str, LedgerRow]] = []
        self._fences: dict[str, int] = {}
        self._blobs: dict[str, bytes] = {}

    def _find(self, session_id: str) -> MemorySession:
        try:
            return self._sessions[session_id]
        except KeyError:
            raise UnknownId("session", session_id) from None

    async def create_session(self, session: NewSession) -> None:
        """Store a new session, unless the same one is stored."""
        await checkpoint()
        self._sessions[session.session_id] = self._find_or_create(session)

    def _find_or_create(self, new: NewSession) -> MemorySession:
        found = self._sessions.get(new.session_id)
        if found is None:
            fence = self._fences.get(new.session_id, 0)
            return MemorySession(len(self._sessions) + 1, new, new.body, fence)
        if found.new != new:
            raise IdTaken("session", new.session_id)
        return found

    async def session(self, session_id: str) -> StoredSession:
        """Return the stored session."""
        await checkpoint()
        return self._find(session_id).stored()

    async def sessions(
        self,
        *,
        provider: str | None = None,
        state: Literal["open", "closed"] | None = None,
        since: int | None = None,
        limit: int = 100,
        cursor: int | None = None,
    ) -> Page[StoredSession]:
        """Return sessions, the newest first."""
        await checkpoint()
        wanted = (
            (session.key, stored)
            for session in reversed(self._sessions.values())
            for stored in [session.stored()]
            if provider in (None, stored.provider)
            and state in (None, stored.state)
            and (since is None or stored.created >= since)
        )
        return _page(wanted, limit, cursor)

    async def run(self, run_id: str) -> StoredRun:
        """Return the stored run."""
        await checkpoint()
        try:
            return self._runs[run_id].stored()
        except KeyError:
            raise UnknownId("run", run_id) from None

    async def runs(
        self,
        *,
        session_id: str | None = None,
        statuses: Collection[str] | None = None,
        provider: str | None = None,
        limit: int = 100,
        cursor: int | None = None,
    ) -> Page[StoredRun]:
        """Return runs, the newest first."""
        await checkpoint()
        wanted = (
            (run.key, stored)
            for run in reversed(self._runs.values())
            for stored in [run.stored()]
            if session_id in (None, stored.session_id)
            and provider in (None, stored.provider)
            and (statuses is None or stored.status in statuses)
        )
        return _page(wanted, limit, cursor)

    async def resolve(self, prefix: str, kind: Kind | None = None) -> str:
        """Return the one id that begins with `prefix`."""
        await checkpoint()
        known: dict[Kind, Iterable[str]] = {
            "session": self._sessions,
            "run": self._runs,
            "snapshot": self._snapshots,
        }
        ids = [each for name in known if kind in (None, name) for each in known[name]]
        return single_match(prefix, kind, [each for each in ids if each.startswith(prefix)])

    async def append(self, append: Append) -> AppendResult:
        """Store a batch, or refuse it before anything has changed."""
        (outcome,) = await self.append_all([append])
        return append_result(outcome)

    async def append_all(self, appends: Sequence[Append]) -> Sequence[AppendResult | Exception]:
        """Store batches, each one independently."""
        await checkpoint()
        return [self._outcome(append) for append in appends]

    def _outcome(self, append: Append) -> AppendResult | Exception:
        try:
            return self._append(append)
        except Exception as error:  # noqa: BLE001  # the outcome of this one
            return error

    def _append(self, append: Append) -> AppendResult:
        ends = terminal_events(append)
        if append.new_session is None:
            session = self._find(append.session_id)
        else:
            session = self._find_or_create(append.new_session)
        check_fence(append, session.fence)
        begun = session.batches.get(append.first)
        if is_duplicate(append, len(session.events), begun):
            return AppendResult(append.rows[-1].seq, duplicate=True)
        known_runs = {
            run_id: KnownRun(run.session.new.session_id, run.status)
            for run_id in append_runs(append)
            for run in [self._runs.get(run_id)]
            if run is not None
        }
        check_runs(append, ends, known_runs)
        for snapshot in append.snapshots:
            if self._snapshots.get(snapshot.snapshot_id, snapshot) != snapshot:
                raise IdTaken("snapshot", snapshot.snapshot_id)
        self._snapshots.update({each.snapshot_id: each for each in append.snapshots})
        self._sessions[append.session_id] = session
        session.fence = append.fence
        session.batches[append.first] = batch_identity(append.fence, len(append.rows), append.batch)
        session.events += append.rows
        for data in append.blobs:
            self._blobs.setdefault(hashlib.sha256(data).hexdigest(), data)
        self._update_runs(append, session, ends)
        self._ledger += [(append.session_id, row) for row in append.ledger]
        if append.session is not None:
            session.body = append.session
        if append.reopens:
            session.closed = None
        if append.closes and session.closed is None:
            session.closed = append.at
        self._notifier.notify(("session", append.session_id), len(session.events))
        return AppendResult(len(session.events))

    def _update_runs(self, append: Append, session: MemorySession, ends: Mapping[str, int]) -> None:
        for row in append.runs:
            run = self._runs.get(row.run_id)
            if run is None:
                run = MemoryRun(len(self._runs) + 1, row.run_id, session, row.status, row.body)
                self._runs[row.run_id] = run
            run.status = row.status
            run.body = row.body
            if row.run_id in ends:
                run.terminal = ends[row.run_id]
                run.ended = append.at
        for event in append.rows:
            if event.run_id is not None:
                run = self._runs[event.run_id]
                run.first = run.first or event.seq
                run.last = event.seq

    async def events(
        self,
        session_id: str,
        *,
        after: int = 0,
        until: int | None = None,
        run_id: str | None = None,
        types: Collection[str] | None = None,
        limit: int = 1000,
    ) -> EventPage:
        """Return events with numbers above `after`, up to `until`."""
        await checkpoint()
        events = self._find(session_id).events
        end = len(events) if until is None else min(until, len(events))

        def items() -> Iterator[EventRow | PrunedRange]:
            for seq in range(max(after, 0) + 1, end + 1):
                event = events[seq - 1]
                if run_id not in (None, event.run_id):
                    continue
                if types is None or event.type in types:
                    yield PrunedRange(seq, seq) if isinstance(event, PrunedEvent) else event

        return paginate(session_id, items(), limit=limit, end=max(after, end))

    async def wait(self, session_id: str, *, after: int) -> int:
        """Wait until the session has an event above `after`."""
        await checkpoint()
        last = len(self._find(session_id).events)
        return last if last > after else await self._notifier.wait(("session", session_id), after)

    async def prune(self, *, before: int, session_id: str | None = None) -> PruneResult:
        """Drop streamed deltas of runs that ended before then."""
        await checkpoint()
        sizes: list[int] = []
        touched: set[str] = set()
        for session in self._sessions.values():
            if session_id not in (None, session.new.session_id):
                continue
            for place, event in enumerate(session.events):
                if (
                    isinstance(event, PrunedEvent)
                    or event.type not in DELTAS
                    or event.run_id is None
                ):
                    continue
                ended = self._runs[event.run_id].ended
                if ended is not None and ended < before:
                    session.events[place] = PrunedEvent(event.run_id, event.type)
                    session.batches.pop(event.seq, None)
                    touched.add(event.run_id)
                    sizes.append(len(event.body))
        return PruneResult(len(sizes), len(touched), sum(sizes))

    def _remove_sessions(
        self, before: int, session_id: str | None, held: Collection[str]
    ) -> tuple[RemovalResult, set[str], set[str]]:
        """Remove sessions; return the totals, their ids, and the images that no event names now."""
        events = size = 0
        gone, named = set[str](), set[str]()
        old = [
            name
            for name, session in self._sessions.items()
            if session_id in (None, name) and name not in held and self._is_old(session, before)
        ]
        for name in old:
            session = self._sessions.pop(name)
            kept = [event for event in session.events if not isinstance(event, PrunedEvent)]
            events, size = events + len(kept), size + sum(len(event.body) for event in kept)
            named |= _images(kept)
            runs = [run.run_id for run in self._runs.values() if run.session is session]
            for run_id in runs:
                del self._runs[run_id]
            gone.update((name, *runs))
            self._ledger = [each for each in self._ledger if each[0] != name]
            for snapshot in [s for s in self._snapshots.values() if s.session_id == name]:
                del self._snapshots[snapshot.snapshot_id]
        for session in self._sessions.values():
            named -= _images(
                event for event in session.events if not isinstance(event, PrunedEvent)
            )
        return RemovalResult(sessions=len(old), events=events, size=size), gone, named

    def _is_old(self, session: MemorySession, before: int) -> bool:
        ends = [run.ended for run in self._runs.values() if run.session is session]
        return session.new.at < before and all(end is not None and end < before for end in ends)


def _images(events: Iterable[EventRow]) -> set[str]:
    return {sha for event in events if event.type == IMAGE for sha in image_blobs(event.body)}


def _page(found: Iterable[tuple[int, T]], limit: int, cursor: int | None) -> Page[T]:
    rows: list[tuple[int, T]] = []
    for key, row in found:
        if cursor is not None and key >= cursor:
            continue
        if len(rows) == limit:
            return Page(tuple(row for _, row in rows), rows[-1][0])
        rows.append((key, row))
    return Page(tuple(row for _, row in rows))
