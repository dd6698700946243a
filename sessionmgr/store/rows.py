"""What a store is handed and hands out: rows of bytes, integers and names.

The bytes of a row are the record; no store looks into them or writes them anew. Times are
milliseconds since 1970 and come from the caller, who owns the clock.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from msgspec import Struct, structs

T = TypeVar("T")


class EventRow(Struct, frozen=True, gc=False):
    """One event: its number within the session, whose it is, its type, and the record."""

    seq: int
    run_id: str | None
    type: str
    body: bytes


class RunRow(Struct, frozen=True, gc=False):
    """How a run stands after an append; `body` is its folded record."""

    run_id: str
    status: str
    body: bytes


class LedgerRow(Struct, frozen=True, gc=False):
    """What was used since the last row: a delta, never a total.

    Money is counted in billionths of a dollar, because a token may cost less than a millionth;
    with none, nobody has said what it cost.
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
    """A session that is to be."""

    session_id: str
    provider: str
    at: int
    body: bytes


class SnapshotRow(Struct, frozen=True, kw_only=True, gc=False):
    """What a paused run needs to go on."""

    snapshot_id: str
    session_id: str
    run_id: str | None
    at: int
    body: bytes


class Append(Struct, frozen=True, kw_only=True, gc=False):
    """One batch of events with what follows from them: stored whole or not at all.

    `rows` are numbered in a row from `first`. `fence` is that of the keeper's lease on the
    session, `batch` tells this batch from any other at the same number.
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
    """The session's own record, where the batch changes it."""
    new_session: NewSession | None = None
    """The session itself, where it may be new: it is stored with the batch or not at all."""
    closes: bool = False
    """Whether the session is closed with it, at `at`, if it is not yet."""
    reopens: bool = False
    """Whether it reopens the session if that is closed."""
    blobs: tuple[bytes, ...] = ()
    """The images that its events name by their sha256, stored with them."""
    snapshots: tuple[SnapshotRow, ...] = ()
    """Snapshots of runs that the batch pauses, stored with it."""


class AppendResult(Struct, frozen=True, gc=False):
    """The batch is stored; `duplicate` says that it was already."""

    last_seq: int
    duplicate: bool = False


def append_result(outcome: AppendResult | Exception) -> AppendResult:
    """Return what came of an append.

    Raises:
        Exception: It was refused.
    """
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


class StoredSession(Struct, frozen=True, kw_only=True, gc=False):
    """A session as it stands; its events are numbered 1 to `last_seq`."""

    session_id: str
    provider: str
    state: str
    created: int
    closed: int | None
    fence: int
    last_seq: int
    body: bytes


class StoredRun(Struct, frozen=True, kw_only=True, gc=False):
    """A run as it stands; `first_seq` to `last_seq` hold all its events, and maybe others'."""

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
    """Some of what was asked for; `cursor` asks for what comes next, if there is more."""

    rows: tuple[T, ...]
    cursor: int | None = None


class EventPage(Struct, frozen=True):
    """Some events, in order; whatever the filter left out up to `last` has been looked at.

    Reading goes on with `after=last`; where there is not `more`, by waiting first.
    """

    rows: tuple[EventRow, ...]
    last: int
    more: bool


class LeaseOwner(Struct, frozen=True, gc=False):
    """Who holds a lease: a process, told apart from any later one with the same pid."""

    boot_id: str
    pid: int
    start: int
    name: str = ""
    """Tells two owners within one process apart."""
    namespace: str = ""
    """The PID namespace of `pid`; empty if unknown."""


class Lease(Struct, frozen=True, kw_only=True):
    """A name that one owner holds until `expires`, unless renewed.

    Each one has a higher fence than those before it under its name.
    """

    name: str
    owner: LeaseOwner
    fence: int
    expires: int


class Request(Struct, frozen=True, kw_only=True, gc=False):
    """Something that another process wants of the manager: cancel, pause, append, approve."""

    request_id: str
    kind: str
    target: str
    at: int
    body: bytes = b""


def without_body(request: Request) -> Request:
    """Return a completed request without its body, which is no longer needed."""
    return structs.replace(request, body=b"")


class StoredRequest(Struct, frozen=True, kw_only=True):
    """A request as it stands: who took it, and what came of it."""

    number: int
    request: Request
    owner: LeaseOwner | None = None
    result: bytes | None = None


class CostTotals(Struct, frozen=True, kw_only=True, gc=False):
    """What the ledger's rows add up to; `unpriced` of them did not say what they cost."""

    rows: int
    input: int
    cached_input: int
    cache_write: int
    output: int
    reasoning: int
    nano_usd: int
    unpriced: int


class PruneResult(Struct, frozen=True, gc=False):
    """What `prune` dropped."""

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
