"""State of the sessions and runs in a memory store."""

from __future__ import annotations

from msgspec import Struct, field

from sessionmgr.store.rows import EventRow, NewSession, StoredRun, StoredSession


class PrunedEvent(Struct, frozen=True, gc=False):
    """Placeholder of a pruned event."""

    run_id: str | None
    type: str


class MemorySession(Struct):
    """Session with its events; the event with number n has the index n - 1."""

    key: int
    new: NewSession
    body: bytes
    fence: int
    closed: int | None = None
    events: list[EventRow | PrunedEvent] = field(default_factory=list[EventRow | PrunedEvent])
    batches: dict[int, str] = field(default_factory=dict[int, str])

    def stored(self) -> StoredSession:
        """Return it as the store's callers see it."""
        return StoredSession(
            session_id=self.new.session_id,
            provider=self.new.provider,
            state="open" if self.closed is None else "closed",
            created=self.new.at,
            closed=self.closed,
            fence=self.fence,
            last_seq=len(self.events),
            body=self.body,
        )


class MemoryRun(Struct):
    """Run of a session."""

    key: int
    run_id: str
    session: MemorySession
    status: str
    body: bytes
    first: int | None = None
    last: int | None = None
    terminal: int | None = None
    ended: int | None = None

    def stored(self) -> StoredRun:
        """Return it as the store's callers see it."""
        return StoredRun(
            run_id=self.run_id,
            session_id=self.session.new.session_id,
            provider=self.session.new.provider,
            status=self.status,
            first_seq=self.first,
            last_seq=self.last,
            terminal_seq=self.terminal,
            ended=self.ended,
            body=self.body,
        )
