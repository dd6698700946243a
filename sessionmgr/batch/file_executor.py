"""Executor for a batch's file access: one thread, one piece of work at a time.

A locked ledger or a hanging disk delays only the writes, not clocks or pipes. In virtual time,
which cannot wait for a thread, the work runs inline.

The work may use state that the event loop uses, too (the scheduler, the counters): the task that
submits it waits for it, and all other tasks only read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

import trio

from sessionmgr.batch.errors import LedgerUnusable
from sessionmgr.batch.progress import WaitStatus

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

BOUND: Final = 60.0
"""Time limit in seconds for a piece of work, as for the store's; `extend_bound` prolongs it."""
STEPS: Final = 4
"""Number of steps in which the time limit passes. If the system suspends this process, however
long, that counts as one step.
"""
GRACE: Final = 5.0
"""Time limit in seconds for closing the files."""
NOTICED: Final = 1.0
"""Seconds after which a wait is reported."""


class FileExecutor:
    """Runs the file work of one batch, with a time limit."""

    def __init__(self, ledger: str) -> None:
        self._ledger: Final = ledger
        self._is_inline: Final = _is_virtual(trio.lowlevel.current_clock())
        self._one_at_a_time: Final = trio.CapacityLimiter(1)
        self._left = 0
        """The remaining steps of the current work; 0 if there is no work."""
        self._since = 0.0
        self._is_locked = False
        self._refusal: LedgerUnusable | None = None
        self.is_shielded = False
        """Whether cancellation waits for the work: once attempts run, its outcome must be known."""

    async def run(self, work: Callable[[], T]) -> T:
        """Run work and return its result; after a cancellation, the executor accepts no more work.

        Raises:
            LedgerUnusable: This work, or earlier work, exceeded its time limit.
        """
        if self._refusal is not None:
            raise LedgerUnusable(self._ledger, self._refusal.why)
        if self._is_inline:
            return await _run_inline(work)
        done: list[T] = []
        crash: Exception | None = None
        self._since, self._is_locked, self._left = trio.current_time(), False, STEPS
        async with trio.open_nursery() as nursery:
            nursery.cancel_scope.shield = self.is_shielded
            nursery.start_soon(self._enforce_bound, nursery.cancel_scope)
            try:
                done.append(await self._in_thread(work))
            except trio.Cancelled:
                self._disable()
                raise
            except Exception as error:  # noqa: BLE001  # raised bare, not as the nursery's
                crash = error
            finally:
                self._left = 0
            nursery.cancel_scope.shield = True  # the outcome is known
            nursery.cancel_scope.cancel()
        if crash is not None:
            raise crash
        if done:
            return done[0]
        assert self._refusal is not None
        raise self._refusal

    async def _enforce_bound(self, scope: trio.CancelScope) -> None:
        """Cancel the work at its time limit."""
        while self._left:
            await trio.sleep(BOUND / STEPS)
            self._left -= 1
        scope.cancel()

    def _disable(self) -> None:
        """Accept no more work: the time limit or the end of the batch has cancelled this work."""
        why = (
            "the batch stopped waiting for it"
            if self._left
            else _stall_message(is_locked=self._is_locked)
        )
        self._refusal = LedgerUnusable(self._ledger, why)

    async def read(self, work: Callable[[], T]) -> T:
        """Return the result of read-only work; it waits for its turn and can be cancelled.

        Raises:
            LedgerUnusable: Earlier work exceeded its time limit.
        """
        if self._refusal is not None:
            await trio.sleep(GRACE)  # meanwhile the batch ends for that reason
            raise LedgerUnusable(self._ledger, self._refusal.why)
        return await (_run_inline(work) if self._is_inline else self._in_thread(work))

    async def close(self, work: Callable[[], object]) -> None:
        """Run the last work; abandon it if it hangs."""
        if self._is_inline:
            await _run_inline(work)
            return
        with trio.move_on_after(GRACE, shield=True):
            await self._in_thread(work)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await trio.to_thread.run_sync(
            work, abandon_on_cancel=True, limiter=self._one_at_a_time
        )

    def extend_bound(self) -> None:
        """Give the current work another `BOUND` from now on."""
        if self._left:
            self._left = STEPS

    def stall(self, now: float) -> WaitStatus | None:
        """Return the cause of a stall; None if there is none."""
        if not self._left or now - self._since < NOTICED:
            return None
        why = "locked by another process" if self._is_locked else "its disk does not respond"
        return WaitStatus(what="ledger", seconds=now - self._since, why=why)

    # --- called in the thread --------------------------------------------------------------------

    def keep_waiting(self) -> bool:
        """Note that the ledger is locked; return whether to try again."""
        self._is_locked = True
        return not self._is_inline and self._refusal is None


async def in_thread(work: Callable[[], T], *, limiter: trio.CapacityLimiter | None = None) -> T:
    """Run work on the user's files in a thread, which is abandoned if this is cancelled."""
    if _is_virtual(trio.lowlevel.current_clock()):
        return await _run_inline(work)
    return await trio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=limiter)


async def _run_inline(work: Callable[[], T]) -> T:
    done = work()
    await trio.lowlevel.cancel_shielded_checkpoint()
    return done


def _is_virtual(clock: trio.abc.Clock) -> bool:
    # A second of a virtual clock takes no time, or forever.
    return clock.deadline_to_sleep_time(clock.current_time() + 1.0) > 2.0


def _stall_reason(*, is_locked: bool) -> str:
    if is_locked:
        return "the ledger is locked by another process"
    return "the disk of the ledger does not respond"


def _stall_message(*, is_locked: bool) -> str:
    remedy = (
        "close the program that has it open (sqlite3, a backup)" if is_locked else "check the disk"
    )
    return (
        f"{_stall_reason(is_locked=is_locked)}, for {BOUND:g} s now; {remedy}, then run the same"
        " command again, which records from the store what has ended meanwhile"
    )
