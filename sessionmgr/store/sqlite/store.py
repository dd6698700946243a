"""The SQLite store, whole."""

from __future__ import annotations

import hashlib
from contextlib import asynccontextmanager, suppress
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import trio

from sessionmgr.errors import LeaseHeld, StoreClosed, StoreError, StoreFailed, StoreUnusable
from sessionmgr.store.admission import is_held
from sessionmgr.store.row import (
    Append,
    Appended,
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
    appended,
)
from sessionmgr.store.sqlite import holding, journal, reading, removal, shelf
from sessionmgr.store.sqlite.connection import CHECKPOINT_PAGES, Durability, Options
from sessionmgr.store.sqlite.ground import Executor, Ground

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence

    from sessionmgr.store.contract import Kind


_BODY: Final = attrgetter("body")


def _size(append: Append) -> int:
    return sum(map(len, (*map(_BODY, (*append.rows, *append.runs)), *append.blobs)))


class SqliteStore(Ground):
    """A store in a file; `open_sqlite_store` opens it."""

    # --- the journal -------------------------------------------------------------------------

    async def create_session(self, session: NewSession) -> None:
        """Store a new session, unless the very same is there."""
        await self._write(lambda connection: journal.create_session(connection, session))

    async def close_session(self, session_id: str, *, at: int) -> None:
        """Note that the session is closed, if it is not yet."""
        await self._write(lambda connection: journal.close_session(connection, session_id, at))

    async def session(self, session_id: str) -> StoredSession:
        """Return the session as it stands."""
        return await self._read(lambda connection: reading.session(connection, session_id))

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
        return await self._read(
            lambda connection: reading.sessions(connection, provider, state, since, limit, cursor)
        )

    async def run(self, run_id: str) -> StoredRun:
        """Return the run as it stands."""
        return await self._read(lambda connection: reading.run(connection, run_id))

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
        return await self._read(
            lambda connection: reading.runs(
                connection, session_id, statuses, provider, limit, cursor
            )
        )

    async def resolve(self, prefix: str, kind: Kind | None = None) -> str:
        """Return the one id that begins with `prefix`."""
        return await self._read(lambda connection: reading.resolve(connection, prefix, kind))

    async def append(self, append: Append) -> Appended:
        """Store a batch, or refuse it before anything has changed."""
        (outcome,) = await self.append_all([append])
        return appended(outcome)

    async def append_all(self, appends: Sequence[Append]) -> Sequence[Appended | Exception]:
        """Store batches in one transaction; if one of them cannot be stored, each by itself."""
        if len(appends) > 1:
            try:
                return await self._append_all(appends)
            except StoreFailed:
                pass  # one may be too large, say
            except (StoreClosed, StoreUnusable):
                raise
            except Exception:  # noqa: BLE001  # its own outcome says which one is refused
                pass
        return [await self._outcome(append) for append in appends]

    async def _outcome(self, append: Append) -> Appended | Exception:
        try:
            return (await self._append_all([append]))[0]
        except Exception as error:  # noqa: BLE001  # the outcome of this one
            return error

    async def _append_all(self, appends: Sequence[Append]) -> list[Appended]:
        return await self._write(
            lambda connection: [journal.append(connection, append) for append in appends],
            rows=sum([len(append.rows) for append in appends]) or 1,
            size=sum(map(_size, appends)),
            rings=[
                (("session", append.session_id), append.first + len(append.rows) - 1)
                for append in appends
            ],
        )

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
        return await self._read(
            lambda connection: reading.events(
                connection, session_id, after, until, run_id, types, limit
            )
        )

    async def wait(self, session_id: str, *, after: int) -> int:
        """Wait until the session has an event above `after`."""
        return await self._wait(
            ("session", session_id),
            after,
            lambda connection: reading.find_session(connection, session_id)[1],
        )

    async def prune(self, *, before: int, session_id: str | None = None) -> Pruned:
        """Drop streamed deltas of runs that ended before then, some at a time."""
        events = size = 0
        runs: set[int] = set()
        async with self._short_log():
            while True:
                some = await self._write(
                    lambda connection: journal.prune_some(connection, before, session_id),
                    rows=journal.PRUNED_AT_ONCE,
                )
                if some is None:
                    break
                runs.update(some)
                events += sum(count for count, _ in some.values())
                size += sum(bytes_ for _, bytes_ in some.values())
            return Pruned(events, len(runs), size, await self._give_back())

    async def remove(self, *, before: int, session_id: str | None = None) -> Removed:
        """Remove sessions all of whose runs ended before then, one at a time."""
        sessions = events = size = last = 0
        blobs = set[str]()
        async with self._short_log():
            while one := await self._write(
                partial(removal.remove_one, after=last, before=before, session_id=session_id),
                rows=journal.PRUNED_AT_ONCE,
            ):
                last, removed, named = one
                blobs |= named
                sessions, events = sessions + 1, events + removed.events
                size += removed.size
            if session_id is None:
                await self._write(lambda connection: removal.remove_requests(connection, before))
            images = Removed()
            if blobs:
                images = await self._write(partial(removal.remove_blobs, named=blobs))
            freed = await self._give_back()
        return Removed(sessions, events, images.blobs, size + images.size, freed)

    @asynccontextmanager
    async def _short_log(self) -> AsyncGenerator[None]:
        """Keep the log as small as possible: the disk may be almost full."""
        await self._write(lambda connection: removal.keep_log(connection, removal.SHORT_LOG))
        try:
            yield
        finally:
            # Bounded by the patience for others' locks; a closed file has no log any more.
            with trio.CancelScope(shield=True), suppress(StoreError):
                await self._write(lambda connection: removal.keep_log(connection, CHECKPOINT_PAGES))

    async def _give_back(self) -> int:
        """Return free pages of the file to the disk in steps; the result is their size."""
        freed = 0
        while some := await self._write(removal.give_back_some, rows=journal.PRUNED_AT_ONCE):
            freed += some
        return freed

    # --- the shelf ---------------------------------------------------------------------------

    async def put_blob(self, data: bytes) -> str:
        """Store bytes, once; return their sha256."""
        # Not on the loop, and not where others wait to be committed.
        sha256 = await self._read(lambda _: hashlib.sha256(data).hexdigest())
        await self._write(
            lambda connection: shelf.put_blob(connection, sha256, data), size=len(data)
        )
        return sha256

    async def blob(self, sha256: str) -> bytes:
        """Return the bytes."""
        return await self._read(lambda connection: shelf.blob(connection, sha256))

    async def put_snapshot(self, snapshot: Snapshot) -> None:
        """Store a snapshot, unless the very same is there."""
        await self._write(lambda connection: shelf.put_snapshot(connection, snapshot))

    async def snapshot(self, snapshot_id: str) -> Snapshot:
        """Return a snapshot."""
        return await self._read(lambda connection: shelf.snapshot(connection, snapshot_id))

    async def snapshots(self, session_id: str) -> Sequence[Snapshot]:
        """Return the session's snapshots, the oldest first."""
        return await self._read(lambda connection: shelf.snapshots(connection, session_id))

    async def put_backoff(self, key: str, body: bytes | None) -> None:
        """Set the state of a back-off, or with None forget it."""
        await self._write(lambda connection: shelf.put_note(connection, "backoffs", key, body))

    async def backoffs(self) -> Mapping[str, bytes]:
        """Return the states of all back-offs."""
        return await self._read(lambda connection: shelf.notes(connection, "backoffs"))

    async def put_meta(self, key: str, body: bytes | None) -> None:
        """Set a note, or with None forget it."""
        await self._write(lambda connection: shelf.put_note(connection, "meta", key, body))

    async def meta(self, key: str) -> bytes | None:
        """Return a note."""
        return (await self._read(lambda connection: shelf.notes(connection, "meta"))).get(key)

    async def costs(self, ids: Collection[str]) -> Mapping[str, Costs]:
        """Return the sums for these ids; unknown ones are left out."""
        return await self._read(lambda connection: shelf.costs(connection, ids))

    # --- leases ------------------------------------------------------------------------------

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
        """Take the lease, with a higher fence than any before."""
        # This checks outside the transaction whether the holder is gone or alive; the transaction
        # takes the lease over only if it is still the one that was checked (not renewed, say).
        lease = await self._acquire(name, owner, now, ttl, None)
        while lease.owner != owner:
            if is_held(lease, now, gone, alive):
                raise LeaseHeld(name, lease.owner, lease.fence, lease.expires)
            lease = await self._acquire(name, owner, now, ttl, lease)
        return lease

    async def _acquire(
        self, name: str, owner: Owner, now: int, ttl: int, over: Lease | None
    ) -> Lease:
        return await self._write(
            lambda connection: holding.acquire(connection, name, owner, now, ttl, over)
        )

    async def renew(self, name: str, fence: int, *, now: int, ttl: int) -> Lease:
        """Hold the lease until `now + ttl`."""
        return await self._write(
            lambda connection: holding.renew(connection, name, fence, now, ttl)
        )

    async def release(self, name: str, fence: int) -> None:
        """Give the lease back, if it is still this one."""
        await self._write(lambda connection: holding.release(connection, name, fence))

    async def leases(self, prefix: str = "") -> Sequence[Lease]:
        """Return the leases that are held, by name."""
        return await self._read(lambda connection: holding.leases(connection, prefix))

    # --- requests ----------------------------------------------------------------------------

    async def submit(self, request: Request) -> int:
        """Store a request, unless the very same is there; return its number."""
        number = await self._write(lambda connection: holding.submit(connection, request))
        self._bells.ring(("requests", ""), number)
        return number

    async def requests(self, *, after: int = 0, limit: int = 100) -> Sequence[StoredRequest]:
        """Return requests that nobody has completed, with numbers above `after`."""
        return await self._read(lambda connection: holding.requests(connection, after, limit))

    async def wait_request(self, *, after: int) -> int:
        """Wait until there is a request with a number above `after`."""
        return await self._wait(("requests", ""), after, holding.last_request)

    async def take(
        self, request_id: str, owner: Owner, *, gone: Callable[[Owner], bool] = lambda _: False
    ) -> bool:
        """Say whether the request is now this owner's to carry out."""
        over: Owner | None = None
        while True:
            taker = await self._write(
                partial(holding.take, request_id=request_id, owner=owner, over=over)
            )
            if taker == owner:
                return True
            if taker is None or taker == over or not gone(taker):
                return False
            over = taker

    async def complete(self, request_id: str, result: bytes) -> None:
        """Note what came of the request, if nothing has come of it yet."""
        await self._write(
            lambda connection: holding.complete(connection, request_id, result),
            size=len(result),
            rings=[(("result", request_id), 1)],
        )

    async def wait_result(self, request_id: str) -> bytes:
        """Wait until the request is completed; return what came of it."""
        await self._wait(
            ("result", request_id),
            0,
            lambda connection: holding.request(connection, request_id).result is not None,
        )
        found = await self._read(lambda connection: holding.request(connection, request_id))
        assert found.result is not None
        return found.result


@asynccontextmanager
async def open_sqlite_store(
    path: str | os.PathLike[str],
    *,
    durability: Durability = "process",
    executor: Executor = "thread",
    patience: float = 30.0,
    poll: float | None = 0.1,
    max_bytes: int | None = None,
) -> AsyncGenerator[SqliteStore]:
    """Open the store in this file for the time of a block; a file that is not there is made.

    `durability="power"` flushes each commit to the disk, so that it survives a power failure as
    well as our own end. `patience` is how long another process's lock is waited for, `poll` how
    often other processes' writing is looked for while somebody waits (None: never, nobody else
    uses the file). `executor="inline"` runs everything in the calling task: for virtual time, which
    does not wait for threads. The file does not grow beyond `max_bytes`.

    Raises:
        StoreUnusable: The file cannot be used; the class and the text say why. Nothing was
            overwritten.
    """
    options = Options(
        path=Path(path), durability=durability, patience=patience, max_bytes=max_bytes
    )
    store = SqliteStore(options, executor, poll)
    try:
        await store.start()
        yield store
    finally:
        await store.aclose()
