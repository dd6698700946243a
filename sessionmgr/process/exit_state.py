"""Exit state of a tree: what has happened so far, and the tasks that wait for more."""

from __future__ import annotations

import select
import signal
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.process.exit_report import (
    EmptyProof,
    ExitKind,
    ExitReport,
    LeftRunning,
    ProgramExit,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_DEADLY: Final = frozenset({signal.SIGKILL, signal.SIGTERM})


class ExitState:
    """Exit state of one tree: collects its events, wakes waiting tasks, makes the exit report.

    The manner of the end is decided at the first deadly signal, from the state of that moment: a
    program that ends after it has not ended by itself.
    """

    __slots__ = ("_emptied", "_exit", "_forced", "_kind", "_left", "_ours", "_waiting")

    def __init__(self) -> None:
        self._waiting: trio.lowlevel.ParkingLot | None = None
        self._exit: ProgramExit | None = None
        self._ours = False
        self._forced = False
        self._kind: ExitKind | None = None
        self._emptied: EmptyProof | None = None
        self._left: tuple[LeftRunning, ...] = ()

    @property
    def exit(self) -> ProgramExit | None:
        """End of the program, if it was reported."""
        return self._exit

    @property
    def is_over(self) -> bool:
        """Whether the tree is over."""
        return self._emptied is not None

    def set_forced(self, stdout: int) -> None:
        """Record that a deadly signal is about to be sent; `stdout` is our end of that pipe."""
        if self.is_over:
            return
        self._forced = True
        if self._kind is not None:
            return
        if self._exit is not None:
            self._kind = ExitKind.LEFT_DESCENDANTS
        else:
            self._kind = ExitKind.CLOSED_STDOUT if _is_closed(stdout) else ExitKind.STILL_RUNNING

    def set_exited(self, code: int, *, ours: bool) -> None:
        """Record the program's end: exit code, or minus the signal; `ours` if we sent that."""
        self._exit = ProgramExit(exit_code=code) if code >= 0 else ProgramExit(signal=-code)
        self._ours = ours
        self.notify()

    def set_over(self, emptied: EmptyProof, left: tuple[LeftRunning, ...] = ()) -> None:
        """Record that the tree is over; the first call counts."""
        if self._emptied is None:
            self._emptied = emptied
            self._left = left
            if emptied is EmptyProof.SWEPT and self._kind is None:
                self._kind = ExitKind.LOST
            self.notify()

    def notify(self) -> None:
        """Wake all waiting tasks."""
        if self._waiting is not None:
            self._waiting.unpark_all()

    async def wait_until(self, is_true: Callable[[], bool]) -> None:
        """Wait until the condition is true."""
        if is_true():
            await trio.lowlevel.checkpoint()
        while not is_true():  # the wait itself is a checkpoint
            if self._waiting is None:
                self._waiting = trio.lowlevel.ParkingLot()
            await self._waiting.park()

    async def wait_exit(self) -> ProgramExit:
        """Wait for the program's end."""
        await self.wait_until(lambda: self._exit is not None or self.is_over)
        return self._exit or ProgramExit()

    async def wait_over(self) -> ExitReport:
        """Wait until the tree is over."""
        await self.wait_until(lambda: self.is_over)
        return self.report()

    def report(self) -> ExitReport:
        """Return what is known now."""
        end = self._exit or ProgramExit()
        return ExitReport(
            exit_code=end.exit_code,
            signal=end.signal,
            ending=self._ending(),
            forced=self._forced,
            killed_by_os=end.signal in _DEADLY and not self._ours,
            emptied=self._emptied or EmptyProof.UNPROVED,
            left_running=self._left,
        )

    def _ending(self) -> ExitKind:
        if self._kind is not None:
            return self._kind
        return ExitKind.LOST if self._exit is None else ExitKind.EXITED


def _is_closed(pipe: int) -> bool:
    """Return whether all writers of this pipe are gone; it may still hold unread data."""
    poll = select.poll()
    try:
        poll.register(pipe, 0)
        return any(event & select.POLLHUP for _, event in poll.poll(0))
    except (OSError, ValueError):
        return False  # our end is closed: unknown
