"""Faults of one manager's store: slow, frozen or closed periods, and their effect on a call."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import trio

from sessionmgr.store import StoreBusy, StoreClosed
from sessionmgr.trio_util_types import RepeatedEvent

if TYPE_CHECKING:
    from collections.abc import Generator

    from sessionmgr.store import Append
    from tests.simulation.rng import SeededRandom

Kind: TypeAlias = Literal["slow", "frozen", "closed", "busy", "deaf"]


class InjectedFault(Exception):
    """An exception that no store is documented to raise."""


class StoreFaults:
    """Faults of the store as one manager sees it; another manager may see others."""

    def __init__(self, rng: SeededRandom) -> None:
        self._rng: Final = rng
        self._kind: Kind | None = None
        self._changed: Final = RepeatedEvent()
        self._waiting: Final[set[trio.CancelScope]] = set()
        self._doomed: Final[dict[str, str]] = {}
        self._revived: trio.Event | None = None
        self.periods: Final[list[tuple[float, float]]] = []
        """The periods with faults."""
        self.injected: Final[dict[str, list[float]]] = {}
        """Sessions whose recorder received an unexpected exception, and when."""

    async def during(self, kind: Kind, seconds: float) -> None:
        """Inject a fault for some time."""
        if self._kind is not None or self.dead:
            await trio.lowlevel.checkpoint()
            return
        began = trio.current_time()
        self.periods.append((began, float("inf")))
        self._set(kind)
        try:
            await trio.sleep(seconds)
        finally:
            self._set(None)
            self.periods.remove((began, float("inf")))
            self.periods.append((began, trio.current_time()))

    def _set(self, kind: Kind | None) -> None:
        self._kind = kind
        self._changed.set()
        if kind == "closed":
            for scope in list(self._waiting):
                scope.cancel()

    @property
    def dead(self) -> bool:
        """Whether no call returns any more."""
        return self._revived is not None

    def die(self) -> None:
        """Let no call return any more: the process that uses this store was killed or suspended."""
        self._revived = trio.Event()
        self.periods.append((trio.current_time(), float("inf")))
        self._set(None)

    def revive(self) -> None:
        """Let all calls continue."""
        if self._revived is not None:
            self._revived.set()
            self._revived = None

    def fail_next_append(self, session_id: str, when: Literal["before", "after"]) -> None:
        """Let the next append of a session raise an unexpected exception."""
        self._doomed[session_id] = when

    def take_injected_fault(
        self, append: Append, when: Literal["before", "after"]
    ) -> InjectedFault | None:
        """Return the fault that was injected for this append, if any."""
        session_id = append.session_id
        # The fault is for the recorder, not for the manager that takes over from it.
        by_recorder = "committer" in trio.lowlevel.current_task().name
        if by_recorder and self._doomed.get(session_id) == when:
            del self._doomed[session_id]
            self.injected.setdefault(session_id, []).append(trio.current_time())
            return InjectedFault(f"an append of {session_id}")
        return None

    async def enter(self) -> None:
        """Delay a call on its way to the store.

        Raises:
            StoreClosed: The store is closed.
            StoreBusy: The store is busy.
        """
        if self._kind is None and not self.dead:
            return
        await self._pass()

    async def _pass(self) -> None:
        if self._kind == "slow" and not self.dead:
            await trio.sleep(self._rng.moment(5))
        while self._kind == "frozen" and not self.dead:
            await self._changed.wait()
        if self._revived is not None:
            await self._revived.wait()
        if self._kind == "closed":
            await trio.lowlevel.checkpoint()
            raise StoreClosed("the simulated store")
        if self._kind == "busy" and self._rng.once_in(2):
            await trio.lowlevel.checkpoint()
            raise StoreBusy("the simulated store")

    async def leave(self) -> None:
        """Delay the answer of a call that has taken effect.

        Raises:
            StoreBusy: The answer is lost.
        """
        if self._revived is not None:
            await self._revived.wait()
        if self._kind == "deaf" and self._rng.once_in(2):
            await trio.lowlevel.checkpoint()
            raise StoreBusy("the simulated store", "the answer was lost")
        if self._kind == "slow":
            await trio.sleep(self._rng.moment(2))

    @contextmanager
    def breakable(self) -> Generator[None, None, None]:
        """Wait in this block for something that may never happen, unless the store is closed.

        Raises:
            StoreClosed: The store was closed meanwhile.
        """
        with trio.CancelScope() as scope:
            self._waiting.add(scope)
            try:
                yield
            finally:
                self._waiting.discard(scope)
        if scope.cancelled_caught:
            raise StoreClosed("the simulated store")

    def was_bad(self, since: float, until: float) -> float:
        """Return for how long there were faults between two times."""
        return sum(max(0.0, min(end, until) - max(begin, since)) for begin, end in self.periods)

    def had_bad(self, since: float, until: float) -> bool:
        """Return whether there was any fault between two times."""
        return any(begin <= until and end >= since for begin, end in self.periods)
