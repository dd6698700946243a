"""Independent record of what has reached the store, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
import trio

if TYPE_CHECKING:
    from sessionmgr.store import Append, EventRow


class StoredEventNote(NamedTuple):
    """An event in the store."""

    row: EventRow
    at: float


class StoreRecord:
    """All stored events, by session, in order."""

    def __init__(self) -> None:
        self.sessions: dict[str, list[StoredEventNote]] = {}
        self.ends: dict[str, StoredEventNote] = {}
        """The terminal event of each run."""
        self.first: dict[str, StoredEventNote] = {}
        """The first event of each run."""
        self.largest = 0
        """Bytes of events in the largest batch."""
        self.questions: set[str] = set()
        self.answers: set[str] = set()
        self.sent: set[str] = set()
        """Contents of messages whose state is `sent`."""
        self.queued: set[str] = set()
        """Contents of messages of which any event is stored."""

    def note(self, append: Append) -> None:
        """Record a batch that is stored now."""
        now = trio.current_time()
        self.largest = max(self.largest, sum(len(row.body) for row in append.rows))
        rows = self.sessions.setdefault(append.session_id, [])
        for row in append.rows:
            noted = StoredEventNote(row, now)
            rows.append(noted)
            if row.run_id is not None:
                self._note_run(row.run_id, noted)

    def _note_run(self, run_id: str, noted: StoredEventNote) -> None:
        row = noted.row
        self.first.setdefault(run_id, noted)
        match row.type:
            case "run_completed" | "run_failed" | "run_cancelled" | "run_timed_out":
                self.ends.setdefault(run_id, noted)
            case "run_rate_limited" | "run_paused":
                self.ends.setdefault(run_id, noted)
            case "tool_approval_requested":
                self.questions.add(event_digest(row)["approval_id"])
            case "tool_approval_granted" | "tool_approval_denied":
                self.answers.add(event_digest(row)["approval_id"])
            case "message_sent":
                fields = event_digest(row)
                self.queued.add(fields["content"])
                if fields["state"] == "sent":
                    self.sent.add(fields["content"])
            case _:
                pass

    def has(self, session_id: str, seq: int, body: bytes) -> bool:
        """Return whether exactly this event is stored under that number."""
        rows = self.sessions.get(session_id, [])
        return 0 < seq <= len(rows) and rows[seq - 1].row.body == body


class _Said(msgspec.Struct, frozen=True):
    approval_id: str = ""
    content: str = ""
    state: str = ""
    tool_call_id: str | None = None


_said = msgspec.json.Decoder(_Said)


def event_digest(row: EventRow) -> dict[str, str]:
    """Return the main fields of an event."""
    return msgspec.structs.asdict(_said.decode(row.body))
