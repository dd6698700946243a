"""What a store does for whoever keeps events in it.

`sessionmgr.testing.store_conformance` holds the same in the form of tests. What is true of all of
it: whatever an awaited call has stored is stored for good when it returns, and nobody could see
it before. A call that is cancelled while it waits may or may not have happened; each can be made
again, because each is idempotent. An id that is not stored is an `UnknownId`, one that stands for
something else an `IdTaken`. Nobody reads a clock: `at`, `now` and `before` are the caller's, in
milliseconds since 1970, and how long to wait is the caller's as well.
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
"""What an id stands for."""


class EventJournal(Protocol):
    """Sessions, their events, and the runs that are folded from these."""

    async def create_session(self, session: NewSession) -> None:
        """Store a new session, without events."""
        ...

    async def session(self, session_id: str) -> StoredSession:
        """Return the session as it stands."""
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
        """Return the run as it stands."""
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
        """Return the one id that begins with `prefix`; a whole id is never ambiguous.

        Raises:
            AmbiguousId: There are several.
            UnknownId: There is none.
        """
        ...

    async def append(self, append: Append) -> AppendResult:
        """Store a batch, with the runs as it leaves them, in one transaction.

        The same batch at the same number under the same fence is acknowledged again and changes
        nothing. A run's status is terminal exactly from its terminal event on, which comes in the
        same batch; its record may change later, its status not.

        Raises:
            StaleFence: A lease on the session, or an append, had a higher fence.
            NumberTaken: Another batch has this number.
            NumberGap: Numbers before it are missing.
            AlreadyEnded: A run would get a second terminal event or another terminal status.
            AppendInvalid: The batch contradicts itself, or what is stored of its runs.
        """
        ...

    async def append_all(self, appends: Sequence[Append]) -> Sequence[AppendResult | Exception]:
        """Store batches of several sessions, in one transaction if none is refused.

        Each has an outcome of its own: one that is refused harms no other.

        Raises:
            StoreClosed: The store is closed: none of them is known to be stored.
            StoreUnusable: It cannot be used: likewise.
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

        In place of pruned events that the filter would show stands one row of type
        `events_pruned` for each unbroken range of them, with the range's last number. A page may
        be shorter than `limit` where events are large.
        """
        ...

    async def wait(self, session_id: str, *, after: int) -> int:
        """Wait until the session has an event above `after`; return its last number then."""
        ...

    async def prune(self, *, before: int, session_id: str | None = None) -> PruneResult:
        """Drop streamed deltas of runs that ended before then; all numbers stay as they are."""
        ...

    async def remove(self, *, before: int, session_id: str | None = None) -> RemovalResult:
        """Remove whole sessions that began, and all of whose runs ended, before then.

        This removes their events, runs, costs, snapshots and requests, and the images that no other
        session has. A session with a leaseholder stays.
        """
        ...


class AuxiliaryStore(Protocol):
    """Things that are put somewhere and found again."""

    async def blob(self, sha256: str) -> bytes:
        """Return the bytes."""
        ...

    async def snapshot(self, snapshot_id: str) -> SnapshotRow:
        """Return a snapshot."""
        ...

    async def snapshots(self, session_id: str) -> Sequence[SnapshotRow]:
        """Return the session's snapshots, the oldest first."""
        ...

    async def put_backoff(self, key: str, body: bytes | None) -> None:
        """Set the state of a back-off, or with None forget it."""
        ...

    async def backoffs(self) -> Mapping[str, bytes]:
        """Return the states of all back-offs."""
        ...

    async def put_meta(self, key: str, body: bytes | None) -> None:
        """Set a note about the store itself, or with None forget it."""
        ...

    async def meta(self, key: str) -> bytes | None:
        """Return a note about the store itself."""
        ...

    async def costs(self, ids: Collection[str]) -> Mapping[str, CostTotals]:
        """Return sums by id of session, run or provider's session; unknown ones are left out."""
        ...


class LeaseStore(Protocol):
    """Who may do what only one may do at a time.

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
        """Take the lease, with a higher fence than any before.

        It is free if it has no owner, if it has expired and its owner is not provably `alive`,
        if its owner is provably `gone`, and if the same owner has it already: then the older
        fence is stale.

        Raises:
            LeaseHeld: Somebody else has it.
        """
        ...

    async def renew(self, name: str, fence: int, *, now: int, ttl: int) -> Lease:
        """Hold the lease until `now + ttl`; also an expired one, if nobody has taken it since.

        Raises:
            LeaseLost: It was released or taken over.
        """
        ...

    async def release(self, name: str, fence: int) -> None:
        """Give the lease back, if it is still this one."""
        ...

    async def leases(self, prefix: str = "") -> Sequence[Lease]:
        """Return the leases that are held, expired ones included, by name."""
        ...


class RequestStore(Protocol):
    """What other processes want, and what came of it."""

    async def submit(self, request: Request) -> int:
        """Store a request; return its number, which is higher than those before it."""
        ...

    async def requests(self, *, after: int = 0, limit: int = 100) -> Sequence[StoredRequest]:
        """Return requests that nobody has completed, with numbers above `after`."""
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
        """Say whether the request is now this owner's to carry out, and nobody else's."""
        ...

    async def complete(self, request_id: str, result: bytes) -> None:
        """Record the request's outcome; the first one stays.

        The request's body is erased: it may be the text of a message.
        """
        ...

    async def wait_result(self, request_id: str) -> bytes:
        """Wait until the request is completed; return what came of it."""
        ...


class Store(EventJournal, AuxiliaryStore, LeaseStore, RequestStore, Protocol):
    """All that a manager keeps."""
