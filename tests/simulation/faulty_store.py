"""Store wrapper of one manager: the shared store, with the faults of this manager."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, ParamSpec, Protocol, TypeVar

from sessionmgr.store.rows import AppendResult, append_result

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from sessionmgr.store import Append, Store
    from tests.simulation.store_faults import StoreFaults
    from tests.simulation.store_record import StoreRecord

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class StoreMethod(Protocol[P, T_co]):
    """A method of the store, with its parameters."""

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T_co:
        """Call it."""
        ...


class FaultInjectingStore:
    """Delays calls to a store, refuses them, or loses their answers."""

    def __init__(self, base: Store, faults: StoreFaults, record: StoreRecord) -> None:
        self._base: Final = base
        self._faults: Final = faults
        self._record: Final = record
        self.wait = self._waiting(base.wait)
        self.wait_request = self._waiting(base.wait_request)
        self.wait_result = self._waiting(base.wait_result)
        self.session = self._heard(base.session)
        self.sessions = self._heard(base.sessions)
        self.run = self._heard(base.run)
        self.runs = self._heard(base.runs)
        self.resolve = self._heard(base.resolve)
        self.events = self._heard(base.events)
        self.prune = self._heard(base.prune)
        self.remove = self._heard(base.remove)
        self.blob = self._heard(base.blob)
        self.snapshot = self._heard(base.snapshot)
        self.snapshots = self._heard(base.snapshots)
        self.put_backoff = self._heard(base.put_backoff)
        self.backoffs = self._heard(base.backoffs)
        self.put_meta = self._heard(base.put_meta)
        self.meta = self._heard(base.meta)
        self.costs = self._heard(base.costs)
        self.leases = self._heard(base.leases)
        self.requests = self._heard(base.requests)
        self.create_session = self._done(base.create_session)
        self.acquire = self._done(base.acquire)
        self.renew = self._done(base.renew)
        self.release = self._done(base.release)
        self.submit = self._done(base.submit)
        self.claim_request = self._done(base.claim_request)
        self.complete = self._done(base.complete)

    async def append(self, append: Append) -> AppendResult:
        """Store a batch, and record that it is stored."""
        (outcome,) = await self.append_all([append])
        return append_result(outcome)

    async def append_all(self, appends: Sequence[Append]) -> Sequence[AppendResult | Exception]:
        """Store batches, and record those that are stored."""
        await self._faults.enter()
        hit = {
            append.batch: self._faults.take_injected_fault(append, "before") for append in appends
        }
        spared = [append for append in appends if hit[append.batch] is None]
        stored = await self._base.append_all(spared)
        outcomes = {each.batch: outcome for each, outcome in zip(spared, stored, strict=True)}
        for append in spared:
            outcome = outcomes[append.batch]
            if isinstance(outcome, AppendResult):
                if not outcome.duplicate:
                    self._record.note(append)
                hit[append.batch] = self._faults.take_injected_fault(append, "after")
        await self._faults.leave()
        return [hit[append.batch] or outcomes[append.batch] for append in appends]

    def _heard(self, call: Callable[P, Coroutine[Any, Any, T]]) -> StoreMethod[P, T]:
        """Wrap a query: it may be delayed, and its answer always arrives."""

        async def through(*args: P.args, **kwargs: P.kwargs) -> T:
            await self._faults.enter()
            return await call(*args, **kwargs)

        return through

    def _waiting(self, call: Callable[P, Coroutine[Any, Any, T]]) -> StoreMethod[P, T]:
        """Wrap a wait: it may break."""

        async def through(*args: P.args, **kwargs: P.kwargs) -> T:
            await self._faults.enter()
            with self._faults.breakable():
                return await call(*args, **kwargs)

        return through

    def _done(self, call: Callable[P, Coroutine[Any, Any, T]]) -> StoreMethod[P, T]:
        """Wrap a change: its answer may be lost."""

        async def through(*args: P.args, **kwargs: P.kwargs) -> T:
            await self._faults.enter()
            found = await call(*args, **kwargs)
            await self._faults.leave()
            return found

        return through
