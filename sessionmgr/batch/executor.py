"""Where the files of a batch are read and written: in a thread, one piece of work at a time.

A lock on the ledger or a disk that hangs then delays what is written, and neither clocks nor pipes.
In virtual time, in which no thread can be waited for, the work is done inline.

A piece of work may use what the loop uses, too (the board, the figures): the task that hands it
over waits for it, and all others only read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

import trio

from sessionmgr.batch.progress import Wait
from sessionmgr.errors import LedgerUnusable

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

BOUND: Final = 60.0
"""Seconds for a piece of work, as the store's clock; more of them where `extend` says so."""
GRACE: Final = 5.0
"""Seconds for closing the files."""
NOTICED: Final = 1.0
"""Seconds after which a wait is told."""


class Executor:
    """Does the work on one batch's files."""

    def __init__(self, ledger: str) -> None:
        self._ledger: Final = ledger
        self._is_inline: Final = _is_virtual(trio.lowlevel.current_clock())
        self._one_at_a_time: Final = trio.CapacityLimiter(1)
        self._scope: trio.CancelScope | None = None
        self._since = 0.0
        self._is_locked = False
        self._refusal: LedgerUnusable | None = None
        self.is_shielded = False
        """Whether a cancel waits for the work: once attempts begin, what is written is known."""

    async def run(self, work: Callable[[], T]) -> T:
        """Return what the work returns. When this is cancelled, no other work is done.

        Raises:
            LedgerUnusable: It was not done within the bound, or some work before it was not.
        """
        if self._refusal is not None:
            raise LedgerUnusable(self._ledger, self._refusal.why)
        if self._is_inline:
            return await _inline(work)
        self._since, self._is_locked = trio.current_time(), False
        try:
            deadline, shield = self._since + BOUND, self.is_shielded
            with trio.CancelScope(deadline=deadline, shield=shield) as self._scope:
                return await self._in_thread(work)
        except trio.Cancelled:
            self._refusal = LedgerUnusable(self._ledger, "it is waited for no longer")
            raise
        finally:
            self._scope = None
        self._refusal = LedgerUnusable(self._ledger, _why(is_locked=self._is_locked))
        raise self._refusal

    async def read(self, work: Callable[[], T]) -> T:
        """Return what work returns that writes nothing; it waits for its turn, or to be cancelled.

        Raises:
            LedgerUnusable: Some work before it was not done within its bound.
        """
        if self._refusal is not None:
            await trio.sleep(GRACE)  # in which the whole batch is left, for that very reason
            raise LedgerUnusable(self._ledger, self._refusal.why)
        return await (_inline(work) if self._is_inline else self._in_thread(work))

    async def close(self, work: Callable[[], object]) -> None:
        """Do the last work; what hangs is left behind."""
        if self._is_inline:
            await _inline(work)
            return
        with trio.move_on_after(GRACE, shield=True):
            await self._in_thread(work)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await trio.to_thread.run_sync(
            work, abandon_on_cancel=True, limiter=self._one_at_a_time
        )

    def extend(self) -> None:
        """Give what is being done another `BOUND` from now on."""
        if self._scope is not None:
            self._scope.deadline = trio.current_time() + BOUND

    def waits(self, now: float) -> Wait | None:
        """Return what holds up the work; None: nothing does."""
        if self._scope is None or now - self._since < NOTICED:
            return None
        why = "locked by another process" if self._is_locked else "its disk does not answer"
        return Wait(what="ledger", seconds=now - self._since, why=why)

    # --- in the thread ---------------------------------------------------------------------------

    def keep_waiting(self) -> bool:
        """Hear that the ledger is locked; say whether to try again."""
        self._is_locked = True
        return not self._is_inline and self._refusal is None


async def in_thread(work: Callable[[], T], *, limiter: trio.CapacityLimiter | None = None) -> T:
    """Do work on files of the user's in a thread that is left behind when this is cancelled."""
    if _is_virtual(trio.lowlevel.current_clock()):
        return await _inline(work)
    return await trio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=limiter)


async def _inline(work: Callable[[], T]) -> T:
    done = work()
    await trio.lowlevel.cancel_shielded_checkpoint()
    return done


def _is_virtual(clock: trio.abc.Clock) -> bool:
    # A clock by which a second may take no time at all, or for ever.
    return clock.deadline_to_sleep_time(clock.current_time() + 1.0) > 2.0


def _reason(*, is_locked: bool) -> str:
    if is_locked:
        return "the ledger is locked by another process"
    return "the disk under the ledger does not answer"


def _why(*, is_locked: bool) -> str:
    remedy = "close what has it open, such as sqlite3 or a backup" if is_locked else "look at it"
    return (
        f"{_reason(is_locked=is_locked)}, for {BOUND:g} s by now; {remedy}, and run the same"
        " command again: what has ended meanwhile is in the store, and is written down then"
    )
