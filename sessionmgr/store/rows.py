"""Rows of a store: bytes, integers and names that it receives and returns.

The bytes of a row are the record; no store examines or rewrites them. Times are milliseconds since
1970 and come from the caller.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from msgspec import Struct, structs

T = TypeVar("T")


class EventRow(Struct, frozen=True, gc=False):
    """One event: its number within the session, its session and run, its type, and the record."""

    seq: int
    run_id: str | None
    type: str
    body: bytes


class RunRow(Struct, frozen=True, gc=False):
    """State of a run after an append; `body` is its folded record."""

    run_id: str
    status: str
    body: bytes


class LedgerRow(Struct, frozen=True, gc=False):
    """Usage since the last row: a delta, never a total.

    Money is counted in billionths of a dollar, because a token may cost less than a millionth;
    None means that no cost was reported.
    """

    run_id: str | None = None
    provider_session_id: str | None = None
    input: int = 0
    cached_input: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0
    nano_usd: int | None = None
    provenance: str = "unknown"


class NewSession(Struct, frozen=True, kw_only=True, gc=False):
    """New session, to be created."""

    session_id: str
    provider: str
    at: int
    body: bytes


class SnapshotRow(Struct, frozen=True, kw_only=True, gc=False):
    """Snapshot from which a paused run can be resumed."""

    snapshot_id: str
    session_id: str
    run_id: str | None
    at: int
    body: bytes


class Append(Struct, frozen=True, kw_only=True, gc=False):
    """Batch of events with its effects on session and runs: stored as a whole or not at all.

    `rows` are numbered consecutively from `first`. `fence` is that of the recorder's lease on the
    session; `batch` distinguishes this batch from any other with the same number.
    """

    session_id: str
    fence: int
    batch: str
    first: int
    at: int
    rows: tuple[EventRow, ...]
    runs: tuple[RunRow, ...] = ()
    ledger: tuple[LedgerRow, ...] = ()
    session: bytes | None = None
    """The session's own record, if the batch changes it."""
    new_session: NewSession | None = None
    """The session itself, if it may be new: it is stored with the batch or not at all."""
    closes: bool = False
    """Whether the batch closes the session at `at`, unless it is closed already."""
    reopens: bool = False
    """Whether the batch reopens the session if that is closed."""
    blobs: tuple[bytes, ...] = ()
    """The images that its events name by their sha256, stored with them."""
    snapshots: tuple[SnapshotRow, ...] = ()
    """Snapshots of runs that the batch pauses, stored with it."""


class AppendResult(Struct, frozen=True, gc=False):
    """Result of a stored batch; `duplicate` is true if it was stored before."""

    last_seq: int
    duplicate: bool = False


def append_result(outcome: AppendResult | Exception) -> AppendResult:
    """Return the result of an append.

    Raises:
        Exception: The append was refused.
    """
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


class StoredSession(Struct, frozen=True, kw_only=True, gc=False):
    """Session as it is stored; its events are numbered 1 to `last_seq`."""

    session_id: str
    provider: str
    state: str
    created: int
    closed: int | None
    fence: int
    last_seq: int
    body: bytes


class StoredRun(Struct, frozen=True, kw_only=True, gc=False):
    """Run as it is stored; all its events have numbers from `first_seq` to `last_seq`."""

    run_id: str
    session_id: str
    provider: str
    status: str
    first_seq: int | None
    last_seq: int | None
    terminal_seq: int | None
    ended: int | None
    body: bytes


class Page(Struct, Generic[T], frozen=True):
    """Page of a query's results; `cursor` requests the next page, if there is one."""

    rows: tuple[T, ...]
    cursor: int | None = None


class EventPage(Struct, frozen=True):
    """Page of events, in order; all events up to `last` were examined by the filter.

    Continue with `after=last`; without `more`, wait first.
    """

    rows: tuple[EventRow, ...]
    last: int
    more: bool


class LeaseOwner(Struct, frozen=True, gc=False):
    """Owner of a lease: a process, distinguishable from any later one with the same pid."""

    boot_id: str
    pid: int
    start: int
    name: str = ""
    """Distinguishes owners within one process."""
    namespace: str = ""
    """The PID namespace of `pid`; empty if unknown."""


class Lease(Struct, frozen=True, kw_only=True):
    """Name that one owner holds until `expires`, unless renewed.

    Each lease has a higher fence than those before it under its name.
    """

    name: str
    owner: LeaseOwner
    fence: int
    expires: int


class Request(Struct, frozen=True, kw_only=True, gc=False):
    """Request of another process to the manager: cancel, pause, append, approve."""

    request_id: str
    kind: str
    target: str
    at: int
    body: bytes = b""


def without_body(request: Request) -> Request:
    """Return a completed request without its body, which is no longer needed."""
    return structs.replace(request, body=b"")


class StoredRequest(Struct, frozen=True, kw_only=True):
    """Request as it is stored: its owner and its result."""

    number: int
    request: Request
    owner: LeaseOwner | None = None
    result: bytes | None = None


class CostTotals(Struct, frozen=True, kw_only=True, gc=False):
    """Totals of the ledger's rows; `unpriced` of them have no reported cost."""

    rows: int
    input: int
    cached_input: int
    cache_write: int
    output: int
    reasoning: int
    nano_usd: int
    unpriced: int


class PruneResult(Struct, frozen=True, gc=False):
    """Totals of a `prune`."""

    events: int = 0
    runs: int = 0
    size: int = 0
    """Bytes of the dropped records."""
    freed: int = 0
    """Bytes by which the store has shrunk."""


class RemovalResult(Struct, frozen=True, gc=False):
    """The totals of a `remove`."""

    sessions: int = 0
    events: int = 0
    blobs: int = 0
    size: int = 0
    """Bytes of the removed records and blobs."""
    freed: int = 0
    """Bytes by which the store has shrunk."""
