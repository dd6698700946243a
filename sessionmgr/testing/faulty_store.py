"""A store that fails, delays and counts appends as a test requests."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

import msgspec
import trio

from sessionmgr.store import MemoryStore, StoreClosed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sessionmgr.store import Append, AppendResult

ANY: Final = "*"
"""Matches every append."""


class FaultKind(StrEnum):
    """The kinds of faults."""

    FAIL = "fail"
    """The next append raises an exception, and stores nothing."""
    LOSE = "lose"
    """The next append is stored, but raises an exception instead of returning."""
    SLOW = "slow"
    """Every append is slow."""
    FROZEN = "frozen"
    """Appends do not return."""
    CLOSED = "closed"
    """Every append is refused, because the store is closed."""


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """A fault that starts `after` some seconds and, if it has a duration, lasts `seconds`."""

    kind: FaultKind
    after: float = 0.0
    seconds: float = 0.0


class InjectedError(Exception):
    """The exception that a faulty store raises on purpose."""


class FaultyStore(MemoryStore):
    """A memory store with faults; each entry of `raises` is used once, by a matching append."""

    def __init__(self) -> None:
        super().__init__()
        self.raises: list[tuple[str, Exception]] = []
        """Event types, each with the exception for an append with such an event."""
        self.after: list[tuple[str, Exception]] = []
        """The same, but the append is stored before it raises."""
        self.delay: Callable[[Append], float] = lambda _: 0.0
        self.closed = False
        self.thawed = trio.Event()
        self.thawed.set()
        self.largest = 0
        """The number of events in the largest batch."""

    async def inject(self, faults: Sequence[Fault]) -> None:
        """Inject faults one after the other; afterwards the store works again.

        Args:
            faults: The faults, in their order.
        """
        for fault in faults:
            await trio.sleep(fault.after)
            await self._apply_fault(fault)

    async def _apply_fault(self, fault: Fault) -> None:
        match fault.kind:
            case FaultKind.FAIL:
                self.raises.append((ANY, InjectedError("as planned")))
                await trio.lowlevel.checkpoint()
            case FaultKind.LOSE:
                self.after.append((ANY, InjectedError("as planned, when all was stored")))
                await trio.lowlevel.checkpoint()
            case FaultKind.SLOW:
                usual, self.delay = self.delay, _a_second
                try:
                    await trio.sleep(fault.seconds)
                finally:
                    self.delay = usual
            case FaultKind.FROZEN:
                self.thawed = trio.Event()
                try:
                    await trio.sleep(fault.seconds)
                finally:
                    self.thawed.set()
            case FaultKind.CLOSED:
                self.closed = True
                try:
                    await trio.sleep(fault.seconds)
                finally:
                    self.closed = False

    async def append_all(self, appends: Sequence[Append]) -> Sequence[AppendResult | Exception]:
        """Store batches, unless a fault prevents it.

        Args:
            appends: The batches.
        """
        await self._check_leases_reachable()
        await trio.sleep(max(map(self.delay, appends)))
        return [await self._outcome_of(append) for append in appends]

    async def _outcome_of(self, append: Append) -> AppendResult | Exception:
        fault = _fault_of(self.raises, append)
        if fault is not None:
            return fault
        self.largest = max(self.largest, len(append.rows))
        (outcome,) = await super().append_all([append])
        if isinstance(outcome, Exception):
            return outcome
        return _fault_of(self.after, append) or outcome

    async def _check_leases_reachable(self) -> None:
        """Wait while the store is frozen; raise if it is closed."""
        await self.thawed.wait()
        if self.closed:
            raise StoreClosed("the store")


def _a_second(append: Append) -> float:
    return 1.0


def _fault_of(faults: list[tuple[str, Exception]], append: Append) -> Exception | None:
    for place, (type_, error) in enumerate(faults):
        if type_ == ANY or any(row.type == type_ for row in append.rows):
            del faults[place]
            return error
    return None
