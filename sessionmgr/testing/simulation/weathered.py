"""A store as one manager finds it: the same as the others', through weather of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from sessionmgr.store import Store
from sessionmgr.store.row import Appended, appended

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from sessionmgr.store import (
        Append,
        Costs,
        EventPage,
        Lease,
        NewSession,
        Owner,
        Page,
        Pruned,
        Removed,
        Request,
        Snapshot,
        StoredRequest,
        StoredRun,
        StoredSession,
    )
    from sessionmgr.store.contract import Kind
    from sessionmgr.testing.simulation.record import Record
    from sessionmgr.testing.simulation.weather import Weather


class WeatheredStore(Store):
    """A way to a store on which calls are held up, refused, or lose their answers."""

    def __init__(self, base: Store, weather: Weather, record: Record) -> None:
        self._base: Final = base
        self._weather: Final = weather
        self._record: Final = record

    async def append(self, append: Append) -> Appended:
        """Store a batch, and note that it is stored."""
        (outcome,) = await self.append_all([append])
        return appended(outcome)

    async def append_all(self, appends: Sequence[Append]) -> Sequence[Appended | Exception]:
        """Store batches, and note those that are stored."""
        await self._weather.enter()
        hit = {append.batch: self._weather.strikes(append, "before") for append in appends}
        spared = [append for append in appends if hit[append.batch] is None]
        stored = await self._base.append_all(spared)
        outcomes = {each.batch: outcome for each, outcome in zip(spared, stored, strict=True)}
        for append in spared:
            outcome = outcomes[append.batch]
            if isinstance(outcome, Appended):
                if not outcome.duplicate:
                    self._record.note(append)
                hit[append.batch] = self._weather.strikes(append, "after")
        await self._weather.leave()
        return [hit[append.batch] or outcomes[append.batch] for append in appends]

    async def wait(self, session_id: str, *, after: int) -> int:
        """Wait until the session has an event above `after`."""
        await self._weather.enter()
        with self._weather.breakable():
            return await self._base.wait(session_id, after=after)

    async def wait_request(self, *, after: int) -> int:
        """Wait until there is a request above `after`."""
        await self._weather.enter()
        with self._weather.breakable():
            return await self._base.wait_request(after=after)

    async def wait_result(self, request_id: str) -> bytes:
        """Wait until the request is completed."""
        await self._weather.enter()
        with self._weather.breakable():
            return await self._base.wait_result(request_id)

    async def create_session(self, session: NewSession) -> None:
        """Store a new session."""
        await self._weather.enter()
        await self._base.create_session(session)
        await self._weather.leave()

    async def close_session(
        self,
        session_id: str,
        *,
        at: int,
    ) -> None:
        """Note that the session is closed."""
        await self._weather.enter()
        await self._base.close_session(session_id, at=at)
        await self._weather.leave()

    async def session(self, session_id: str) -> StoredSession:
        """Return the session."""
        await self._weather.enter()
        return await self._base.session(session_id)

    async def sessions(
        self,
        *,
        provider: str | None = None,
        state: Literal["open", "closed"] | None = None,
        since: int | None = None,
        limit: int = 100,
        cursor: int | None = None,
    ) -> Page[StoredSession]:
        """Return sessions."""
        await self._weather.enter()
        return await self._base.sessions(
            provider=provider, state=state, since=since, limit=limit, cursor=cursor
        )

    async def run(self, run_id: str) -> StoredRun:
        """Return the run."""
        await self._weather.enter()
        return await self._base.run(run_id)

    async def runs(
        self,
        *,
        session_id: str | None = None,
        statuses: Collection[str] | None = None,
        provider: str | None = None,
        limit: int = 100,
        cursor: int | None = None,
    ) -> Page[StoredRun]:
        """Return runs."""
        await self._weather.enter()
        return await self._base.runs(
            session_id=session_id, statuses=statuses, provider=provider, limit=limit, cursor=cursor
        )

    async def resolve(self, prefix: str, kind: Kind | None = None) -> str:
        """Return the one id that begins so."""
        await self._weather.enter()
        return await self._base.resolve(prefix, kind)

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
        """Return events."""
        await self._weather.enter()
        return await self._base.events(
            session_id, after=after, until=until, run_id=run_id, types=types, limit=limit
        )

    async def prune(
        self,
        *,
        before: int,
        session_id: str | None = None,
    ) -> Pruned:
        """Drop what may be dropped."""
        await self._weather.enter()
        return await self._base.prune(before=before, session_id=session_id)

    async def remove(self, *, before: int, session_id: str | None = None) -> Removed:
        """Remove the sessions that may be removed."""
        await self._weather.enter()
        return await self._base.remove(before=before, session_id=session_id)

    async def put_blob(self, data: bytes) -> str:
        """Store bytes."""
        await self._weather.enter()
        return await self._base.put_blob(data)

    async def blob(self, sha256: str) -> bytes:
        """Return bytes."""
        await self._weather.enter()
        return await self._base.blob(sha256)

    async def put_snapshot(self, snapshot: Snapshot) -> None:
        """Store a snapshot."""
        await self._weather.enter()
        await self._base.put_snapshot(snapshot)
        await self._weather.leave()

    async def snapshot(self, snapshot_id: str) -> Snapshot:
        """Return a snapshot."""
        await self._weather.enter()
        return await self._base.snapshot(snapshot_id)

    async def snapshots(self, session_id: str) -> Sequence[Snapshot]:
        """Return the session's snapshots."""
        await self._weather.enter()
        return await self._base.snapshots(session_id)

    async def put_backoff(self, key: str, body: bytes | None) -> None:
        """Set a back-off."""
        await self._weather.enter()
        await self._base.put_backoff(key, body)

    async def backoffs(self) -> Mapping[str, bytes]:
        """Return all back-offs."""
        await self._weather.enter()
        return await self._base.backoffs()

    async def put_meta(self, key: str, body: bytes | None) -> None:
        """Set a note."""
        await self._weather.enter()
        await self._base.put_meta(key, body)

    async def meta(self, key: str) -> bytes | None:
        """Return a note."""
        await self._weather.enter()
        return await self._base.meta(key)

    async def costs(self, ids: Collection[str]) -> Mapping[str, Costs]:
        """Return sums."""
        await self._weather.enter()
        return await self._base.costs(ids)

    async def acquire(
        self,
        name: str,
        owner: Owner,
        *,
        now: int,
        ttl: int,
        gone: Callable[[Owner], bool] = lambda _: False,
        alive: Callable[[Owner], bool] = lambda _: False,
    ) -> Lease:
        """Take the lease."""
        await self._weather.enter()
        found = await self._base.acquire(name, owner, now=now, ttl=ttl, gone=gone, alive=alive)
        await self._weather.leave()
        return found

    async def renew(
        self,
        name: str,
        fence: int,
        *,
        now: int,
        ttl: int,
    ) -> Lease:
        """Hold the lease."""
        await self._weather.enter()
        found = await self._base.renew(name, fence, now=now, ttl=ttl)
        await self._weather.leave()
        return found

    async def release(self, name: str, fence: int) -> None:
        """Give the lease back."""
        await self._weather.enter()
        await self._base.release(name, fence)
        await self._weather.leave()

    async def leases(self, prefix: str = "") -> Sequence[Lease]:
        """Return the leases."""
        await self._weather.enter()
        return await self._base.leases(prefix)

    async def submit(self, request: Request) -> int:
        """Store a request."""
        await self._weather.enter()
        found = await self._base.submit(request)
        await self._weather.leave()
        return found

    async def requests(
        self,
        *,
        after: int = 0,
        limit: int = 100,
    ) -> Sequence[StoredRequest]:
        """Return requests."""
        await self._weather.enter()
        return await self._base.requests(after=after, limit=limit)

    async def take(
        self,
        request_id: str,
        owner: Owner,
        *,
        gone: Callable[[Owner], bool] = lambda _: False,
    ) -> bool:
        """Take a request."""
        await self._weather.enter()
        found = await self._base.take(request_id, owner, gone=gone)
        await self._weather.leave()
        return found

    async def complete(self, request_id: str, result: bytes) -> None:
        """Note what came of a request."""
        await self._weather.enter()
        await self._base.complete(request_id, result)
        await self._weather.leave()
