"""The SQLite store, whole."""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.errors import LeaseHeld, StoreClosed, StoreError, StoreFailed, StoreUnusable
from sessionmgr.store.admission import is_held
from sessionmgr.store.row import (
    Append,
    Appended,
    Lease,
    Owner,
    Pruned,
    Removed,
    Request,
    appended,
)
from sessionmgr.store.sqlite import holding, journal, reading, removal, shelf
from sessionmgr.store.sqlite.connection import CHECKPOINT_PAGES, Durability, Options
from sessionmgr.store.sqlite.ground import Executor, Ground, reads, writes

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncGenerator, Callable, Sequence


_BODY: Final = attrgetter("body")


def _size(append: Append) -> int:
    return sum(map(len, (*map(_BODY, (*append.rows, *append.runs)), *append.blobs)))


class SqliteStore(Ground):
    """A store in a file; `open_sqlite_store` opens it."""

    # --- the journal -------------------------------------------------------------------------

    create_session = writes(journal.create_session)
    session = reads(reading.session)
    sessions = reads(reading.sessions)
    run = reads(reading.run)
    runs = reads(reading.runs)
    resolve = reads(reading.resolve)
    events = reads(reading.events)

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
        return await self.write(
            lambda connection: self._group.append_all(connection, appends),
            rows=sum([len(append.rows) for append in appends]) or 1,
            size=sum(map(_size, appends)),
            rings=[
                (("session", append.session_id), append.first + len(append.rows) - 1)
                for append in appends
            ],
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
                some = await self.write(
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
            while one := await self.write(
                partial(removal.remove_one, after=last, before=before, session_id=session_id),
                rows=journal.PRUNED_AT_ONCE,
            ):
                last, removed, named = one
                blobs |= named
                sessions, events = sessions + 1, events + removed.events
                size += removed.size
            if session_id is None:
                await self.write(lambda connection: removal.remove_requests(connection, before))
            images = Removed()
            if blobs:
                images = await self.write(partial(removal.remove_blobs, named=blobs))
            freed = await self._give_back()
        return Removed(sessions, events, images.blobs, size + images.size, freed)

    @asynccontextmanager
    async def _short_log(self) -> AsyncGenerator[None]:
        """Keep the log as small as possible: the disk may be almost full."""
        await self.write(lambda connection: removal.keep_log(connection, removal.SHORT_LOG))
        try:
            yield
        finally:
            # Bounded by the patience for others' locks; a closed file has no log any more.
            with trio.CancelScope(shield=True), suppress(StoreError):
                await self.write(lambda connection: removal.keep_log(connection, CHECKPOINT_PAGES))

    async def _give_back(self) -> int:
        """Return free pages of the file to the disk in steps; the result is their size."""
        freed = 0
        while some := await self.write(removal.give_back_some, rows=journal.PRUNED_AT_ONCE):
            freed += some
        return freed

    # --- the shelf ---------------------------------------------------------------------------

    blob = reads(shelf.blob)
    snapshot = reads(shelf.snapshot)
    snapshots = reads(shelf.snapshots)
    put_backoff = writes(shelf.put_backoff)
    backoffs = reads(shelf.backoffs)
    put_meta = writes(shelf.put_meta)
    meta = reads(shelf.meta)
    costs = reads(shelf.costs)

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
        lease = await self._acquire(name, owner, now, ttl)
        while lease.owner != owner:
            if is_held(lease, now, gone, alive):
                raise LeaseHeld(name, lease.owner, lease.fence, lease.expires)
            lease = await self._acquire(name, owner, now, ttl, lease)
        return lease

    _acquire = writes(holding.acquire)
    renew = writes(holding.renew)
    release = writes(holding.release)
    leases = reads(holding.leases)

    # --- requests ----------------------------------------------------------------------------

    async def submit(self, request: Request) -> int:
        """Store a request, unless the very same is there; return its number."""
        number = await self.write(lambda connection: holding.submit(connection, request))
        self._bells.ring(("requests", ""), number)
        return number

    requests = reads(holding.requests)

    async def wait_request(self, *, after: int) -> int:
        """Wait until there is a request with a number above `after`."""
        return await self._wait(("requests", ""), after, holding.last_request)

    async def take(
        self, request_id: str, owner: Owner, *, gone: Callable[[Owner], bool] = lambda _: False
    ) -> bool:
        """Say whether the request is now this owner's to carry out."""
        over: Owner | None = None
        while True:
            taker = await self.write(
                partial(holding.take, request_id=request_id, owner=owner, over=over)
            )
            if taker == owner:
                return True
            if taker is None or taker == over or not gone(taker):
                return False
            over = taker

    async def complete(self, request_id: str, result: bytes) -> None:
        """Note what came of the request, if nothing has come of it yet."""
        await self.write(
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
        found = await self.read(lambda connection: holding.request(connection, request_id))
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
