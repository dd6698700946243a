"""Contract of a store, as protocols.

`sessionmgr.testing.store_conformance` tests this contract. These rules hold for all of it:

- What an awaited call has stored is durable when the call returns, and invisible before.
- A call that is cancelled while it waits may or may not have happened. Every call is idempotent, so
  it can be repeated.
- An id that is not stored raises `UnknownId`, an id of something else `IdTaken`.
- No call reads a clock: the caller passes `at`, `now` and `before`, in milliseconds since 1970, and
  sets its own time limits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from sessionmgr.store.rows import (
        Append,
        AppendResult,
        CostTotals,
        EventPage,
        Lease,
        LeaseOwner,
        NewSession,
        Page,
        PruneResult,
        RemovalResult,
        Request,
        SnapshotRow,
        StoredRequest,
        StoredRun,
        StoredSession,
    )

Kind: TypeAlias = Literal["session", "run", "snapshot"]
"""Kind of object that an id belongs to."""


class EventJournal(Protocol):
    """Journal of sessions, their events, and the runs that are folded from the events."""

    async def create_session(self, session: NewSession) -> None:
        """Store a new session, without events."""
        ...

    async def session(self, session_id: str) -> StoredSession:
        """Return the stored session."""
        ...

    async def sessions(
        self,
        *,
        provider: str | None = None,
        state: Literal["open", "closed"] | None = None,
        since: int | None = None,
        limit: int = 100,
        cursor: int | None = None,
    ) -> Page[StoredSession]:
        """Return sessions, the newest first; `since` leaves out those created before."""
        ...

    async def run(self, run_id: str) -> StoredRun:
        """Return the stored run."""
        ...

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
        ...

    async def resolve(self, prefix: str, kind: Kind | None = None) -> str:
        """Return the one id that begins with `prefix`; a complete id is never ambiguous.

        Raises:
            AmbiguousId: Several ids begin with it.
            UnknownId: No id begins with it.
        """
        ...

    async def append(self, append: Append) -> AppendResult:
        """Store a batch, with the new state of its runs, in one transaction.

        The same batch at the same number under the same fence is acknowledged again and changes
        nothing. A run's status becomes terminal with its terminal event, which must be in the
        same batch; its record may change later, its status may not.

        Raises:
            StaleFence: A lease on the session, or an append, had a higher fence.
            NumberTaken: Another batch has this number.
            NumberGap: Numbers before it are missing.
            AlreadyEnded: A run would get a second terminal event or another terminal status.
            AppendInvalid: The batch contradicts itself, or the stored state of its runs.
        """
        ...

    async def append_all(self, appends: Sequence[Append]) -> Sequence[AppendResult | Exception]:
        """Store batches of several sessions, in one transaction if none is refused.

        Each batch has its own outcome: a refused one does not affect the others.

        Raises:
            StoreClosed: The store is closed: none of them is known to be stored.
            StoreUnusable: The store is unusable: none of them is known to be stored.
        """
        ...

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
        """Return events with numbers above `after`, up to `until` inclusive.

        One row of type `events_pruned` replaces each unbroken range of pruned events that the
        filter would show; it has the range's last number. A page may be shorter than `limit` if
        events are large.
        """
        ...

    async def wait(self, session_id: str, *, after: int) -> int:
        """Wait until the session has an event above `after`; return its last number then."""
        ...

    async def prune(self, *, before: int, session_id: str | None = None) -> PruneResult:
        """Drop streamed deltas of runs that ended before then; no event is renumbered."""
        ...

    async def remove(self, *, before: int, session_id: str | None = None) -> RemovalResult:
        """Remove whole sessions that began, and all of whose runs ended, before then.

        This removes their events, runs, costs, snapshots and requests, and the images that no other
        session has. A session with a leaseholder stays.
        """
        ...


class AuxiliaryStore(Protocol):
    """Store of blobs, snapshots, back-offs, metadata and cost totals."""

    async def blob(self, sha256: str) -> bytes:
        """Return the bytes of a blob."""
        ...

    async def snapshot(self, snapshot_id: str) -> SnapshotRow:
        """Return a snapshot."""
        ...

    async def snapshots(self, session_id: str) -> Sequence[SnapshotRow]:
        """Return the session's snapshots, the oldest first."""
        ...

    async def put_backoff(self, key: str, body: bytes | None) -> None:
        """Set the state of a back-off; None removes it."""
        ...

    async def backoffs(self) -> Mapping[str, bytes]:
        """Return the states of all back-offs."""
        ...

    async def put_meta(self, key: str, body: bytes | None) -> None:
        """Set an entry of the store's metadata; None removes it."""
        ...

    async def meta(self, key: str) -> bytes | None:
        """Return an entry of the store's metadata."""
        ...

    async def costs(self, ids: Collection[str]) -> Mapping[str, CostTotals]:
        """Return totals by id of session, run or provider's session; unknown ids are left out."""
        ...


class LeaseStore(Protocol):
    """Leases: exclusive rights of one owner at a time.

    A lease whose name is a session's id guards that session: from the moment it is acquired, no
    append with a lower fence is stored.
    """

    async def acquire(
        self,
        name: str,
        owner: LeaseOwner,
        *,
        now: int,
        ttl: int,
        gone: Callable[[LeaseOwner], bool] = lambda _: False,
        alive: Callable[[LeaseOwner], bool] = lambda _: False,
    ) -> Lease:
        """Acquire the lease, with a higher fence than any before.

        It is free if it has no owner, if it has expired and its owner is not provably `alive`,
        if its owner is provably `gone`, and if the same owner has it already: then the older
        fence is stale.

        Raises:
            LeaseHeld: Another owner has it.
        """
        ...

    async def renew(self, name: str, fence: int, *, now: int, ttl: int) -> Lease:
        """Extend the lease until `now + ttl`; an expired one too, unless another owner has it.

        Raises:
            LeaseLost: It was released or acquired by another owner.
        """
        ...

    async def release(self, name: str, fence: int) -> None:
        """Release the lease, if it is still this one."""
        ...

    async def leases(self, prefix: str = "") -> Sequence[Lease]:
        """Return the leases that are held, expired ones included, by name."""
        ...


class RequestStore(Protocol):
    """Requests of other processes, and their results."""

    async def submit(self, request: Request) -> int:
        """Store a request; return its number, which is higher than those before it."""
        ...

    async def requests(self, *, after: int = 0, limit: int = 100) -> Sequence[StoredRequest]:
        """Return requests that are not completed, with numbers above `after`."""
        ...

    async def wait_request(self, *, after: int) -> int:
        """Wait until there is a request with a number above `after`; return the last number."""
        ...

    async def claim_request(
        self,
        request_id: str,
        owner: LeaseOwner,
        *,
        gone: Callable[[LeaseOwner], bool] = lambda _: False,
    ) -> bool:
        """Assign a free request to this owner alone; return whether the owner now has it."""
        ...

    async def complete(self, request_id: str, result: bytes) -> None:
        """Record the request's outcome; the first one stays.

        The request's body is erased: it may be the text of a message.
        """
        ...

    async def wait_result(self, request_id: str) -> bytes:
        """Wait until the request is completed; return its result."""
        ...


class Store(EventJournal, AuxiliaryStore, LeaseStore, RequestStore, Protocol):
    """Store of everything that a manager persists."""
