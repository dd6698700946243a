"""Memory store: the journal, and all other parts of the contract."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from msgspec.structs import replace
from trio.lowlevel import checkpoint

from sessionmgr.store.append_checks import is_lease_held
from sessionmgr.store.errors import IdTaken, LeaseHeld, LeaseLost, UnknownId
from sessionmgr.store.memory.journal import MemoryJournal
from sessionmgr.store.rows import (
    CostTotals,
    Lease,
    LeaseOwner,
    RemovalResult,
    Request,
    SnapshotRow,
    StoredRequest,
    without_body,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence

    from sessionmgr.store.rows import LedgerRow


class MemoryStore(MemoryJournal):
    """Store that exists as long as this object, for one `trio.run`."""

    def __init__(self) -> None:
        super().__init__()
        self._backoffs: dict[str, bytes] = {}
        self._meta: dict[str, bytes] = {}
        self._leases: dict[str, Lease] = {}
        self._requests: dict[str, StoredRequest] = {}

    # --- blobs, snapshots, back-offs, metadata -----------------------------------------------

    async def blob(self, sha256: str) -> bytes:
        """Return the bytes of a blob."""
        await checkpoint()
        try:
            return self._blobs[sha256]
        except KeyError:
            raise UnknownId("blob", sha256) from None

    async def snapshot(self, snapshot_id: str) -> SnapshotRow:
        """Return a snapshot."""
        await checkpoint()
        try:
            return self._snapshots[snapshot_id]
        except KeyError:
            raise UnknownId("snapshot", snapshot_id) from None

    async def snapshots(self, session_id: str) -> Sequence[SnapshotRow]:
        """Return the session's snapshots, the oldest first."""
        await checkpoint()
        self._find(session_id)
        return [each for each in self._snapshots.values() if each.session_id == session_id]

    async def put_backoff(self, key: str, body: bytes | None) -> None:
        """Set the state of a back-off; None removes it."""
        await checkpoint()
        _put(self._backoffs, key, body)

    async def backoffs(self) -> Mapping[str, bytes]:
        """Return the states of all back-offs."""
        await checkpoint()
        return dict(self._backoffs)

    async def put_meta(self, key: str, body: bytes | None) -> None:
        """Set an entry of the store's metadata; None removes it."""
        await checkpoint()
        _put(self._meta, key, body)

    async def meta(self, key: str) -> bytes | None:
        """Return an entry of the store's metadata."""
        await checkpoint()
        return self._meta.get(key)

    async def costs(self, ids: Collection[str]) -> Mapping[str, CostTotals]:
        """Return the totals for these ids; unknown ones are left out."""
        await checkpoint()
        sums: dict[str, CostTotals] = {}
        for each in ids:
            rows = [
                row
                for session_id, row in self._ledger
                if each in (session_id, row.run_id, row.provider_session_id)
            ]
            if rows:
                sums[each] = _sum(rows)
        return sums

    # --- leases ------------------------------------------------------------------------------

    async def _check_leases_reachable(self) -> None:
        """Check that leases are reachable; a store with faults may override this."""
        await checkpoint()

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
        """Acquire the lease, with a higher fence than any before."""
        await self._check_leases_reachable()
        held = self._leases.get(name)
        if held and held.owner != owner and is_lease_held(held, now, gone, alive):
            raise LeaseHeld(name, held.owner, held.fence, held.expires)
        fence = self._fences[name] = self._fences.get(name, 0) + 1
        session = self._sessions.get(name)
        if session is not None:
            fence = self._fences[name] = max(fence, session.fence + 1)
            session.fence = fence
        lease = self._leases[name] = Lease(name=name, owner=owner, fence=fence, expires=now + ttl)
        return lease

    async def renew(self, name: str, fence: int, *, now: int, ttl: int) -> Lease:
        """Extend the lease until `now + ttl`."""
        await checkpoint()
        held = self._leases.get(name)
        if held is None or held.fence != fence:
            raise LeaseLost(name, fence, self._fences.get(name, 0))
        lease = self._leases[name] = Lease(
            name=name, owner=held.owner, fence=fence, expires=now + ttl
        )
        return lease

    async def release(self, name: str, fence: int) -> None:
        """Release the lease, if it is still this one."""
        await checkpoint()
        held = self._leases.get(name)
        if held is not None and held.fence == fence:
            del self._leases[name]

    async def leases(self, prefix: str = "") -> Sequence[Lease]:
        """Return the leases that are held, by name."""
        await checkpoint()
        return [self._leases[name] for name in sorted(self._leases) if name.startswith(prefix)]

    async def remove(self, *, before: int, session_id: str | None = None) -> RemovalResult:
        """Remove sessions all of whose runs ended before then."""
        await checkpoint()
        removed, gone, named = self._remove_sessions(before, session_id, self._leases)
        blobs = [] if self._leases else [sha for sha in named if sha in self._blobs]
        size = removed.size + sum(len(self._blobs.pop(sha)) for sha in blobs)
        for request_id, found in list(self._requests.items()):
            is_old = session_id is None and found.request.at < before
            if is_old or found.request.target in gone:
                del self._requests[request_id]
        return replace(removed, blobs=len(blobs), size=size)

    # --- requests ----------------------------------------------------------------------------

    def _request(self, request_id: str) -> StoredRequest:
        try:
            return self._requests[request_id]
        except KeyError:
            raise UnknownId("request", request_id) from None

    async def submit(self, request: Request) -> int:
        """Store a request, unless the same one is stored; return its number."""
        await checkpoint()
        found = self._requests.get(request.request_id)
        if found is None:
            found = StoredRequest(number=len(self._requests) + 1, request=request)
            self._requests[request.request_id] = found
            self._notifier.notify(("requests", ""), found.number)
        elif found.request != (request if found.result is None else without_body(request)):
            raise IdTaken("request", request.request_id)
        return found.number

    async def requests(self, *, after: int = 0, limit: int = 100) -> Sequence[StoredRequest]:
        """Return requests that are not completed, with numbers above `after`."""
        await checkpoint()
        found = [each for each in self._requests.values() if each.result is None]
        return [each for each in found if each.number > after][:limit]

    async def wait_request(self, *, after: int) -> int:
        """Wait until there is a request with a number above `after`."""
        await checkpoint()
        last = len(self._requests)
        return last if last > after else await self._notifier.wait(("requests", ""), after)

    async def claim_request(
        self,
        request_id: str,
        owner: LeaseOwner,
        *,
        gone: Callable[[LeaseOwner], bool] = lambda _: False,
    ) -> bool:
        """Assign a free request to this owner alone; return whether the owner now has it."""
        await checkpoint()
        found = self._request(request_id)
        taken = found.owner is not None and found.owner != owner and not gone(found.owner)
        if taken or found.result is not None:
            return False
        self._requests[request_id] = StoredRequest(
            number=found.number, request=found.request, owner=owner
        )
        return True

    async def complete(self, request_id: str, result: bytes) -> None:
        """Record the request's outcome, if it has none yet."""
        await checkpoint()
        found = self._request(request_id)
        if found.result is None:
            self._requests[request_id] = StoredRequest(
                number=found.number,
                request=without_body(found.request),
                owner=found.owner,
                result=result,
            )
            self._notifier.notify(("result", request_id), 1)

    async def wait_result(self, request_id: str) -> bytes:
        """Wait until the request is completed; return its result."""
        await checkpoint()
        if self._request(request_id).result is None:
            await self._notifier.wait(("result", request_id), 0)
        result = self._request(request_id).result
        assert result is not None
        return result


def _put(entries: dict[str, bytes], key: str, body: bytes | None) -> None:
    if body is None:
        entries.pop(key, None)
    else:
        entries[key] = body


def _sum(rows: Sequence[LedgerRow]) -> CostTotals:
    return CostTotals(
        rows=len(rows),
        input=sum(row.input for row in rows),
        cached_input=sum(row.cached_input for row in rows),
        cache_write=sum(row.cache_write for row in rows),
        output=sum(row.output for row in rows),
        reasoning=sum(row.reasoning for row in rows),
        nano_usd=sum(row.nano_usd or 0 for row in rows),
        unpriced=sum(row.nano_usd is None for row in rows),
    )


@asynccontextmanager
async def open_memory_store() -> AsyncGenerator[MemoryStore]:
    """Open an empty store, which is discarded at the end of the block."""
    await checkpoint()
    yield MemoryStore()
