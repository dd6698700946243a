"""What has happened to a tree so far, and who waits for more."""

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
    """Is told what happens, wakes those who wait, and makes the facts of it."""

    __slots__ = ("_emptied", "_exit", "_forced", "_left", "_lot", "_ours", "_stood")

    def __init__(self) -> None:
        self._lot: trio.lowlevel.ParkingLot | None = None
        self._exit: ProgramExit | None = None
        self._ours = False
        self._forced = False
        self._stood: ExitKind | None = None
        self._emptied: EmptyProof | None = None
        self._left: tuple[LeftRunning, ...] = ()

    @property
    def exit(self) -> ProgramExit | None:
        """The program's end, if it has come."""
        return self._exit

    @property
    def is_over(self) -> bool:
        """Whether nothing more is to come."""
        return self._emptied is not None

    def set_forced(self, stdout: int) -> None:
        """Note that something deadly is about to be sent; `stdout` is our end of that pipe."""
        if self.is_over:
            return
        self._forced = True
        if self._stood is not None:
            return
        if self._exit is not None:
            self._stood = ExitKind.LEFT_DESCENDANTS
        else:
            self._stood = ExitKind.CLOSED_STDOUT if _is_closed(stdout) else ExitKind.STILL_RUNNING

    def set_exited(self, code: int, *, ours: bool) -> None:
        """Note the program's end: its exit code, or minus the signal, and whether we sent that."""
        self._exit = ProgramExit(exit_code=code) if code >= 0 else ProgramExit(signal=-code)
        self._ours = ours
        self.notify()

    def set_over(self, emptied: EmptyProof, left: tuple[LeftRunning, ...] = ()) -> None:
        """Note that nothing more is to come; the first word holds."""
        if self._emptied is None:
            self._emptied = emptied
            self._left = left
            if emptied is EmptyProof.SWEPT and self._stood is None:
                self._stood = ExitKind.LOST
            self.notify()

    def notify(self) -> None:
        """Wake whoever waits."""
        if self._lot is not None:
            self._lot.unpark_all()

    async def wait_until(self, came: Callable[[], bool]) -> None:
        """Wait until this is so."""
        if came():
            await trio.lowlevel.checkpoint()
        while not came():  # to wait is a checkpoint
            if self._lot is None:
                self._lot = trio.lowlevel.ParkingLot()
            await self._lot.park()

    async def wait_exit(self) -> ProgramExit:
        """Wait for the program's end."""
        await self.wait_until(lambda: self._exit is not None or self.is_over)
        return self._exit or ProgramExit()

    async def wait_over(self) -> ExitReport:
        """Wait until nothing more is to come."""
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
        if self._stood is not None:
            return self._stood
        return ExitKind.LOST if self._exit is None else ExitKind.EXITED


def _is_closed(pipe: int) -> bool:
    """Whether nobody can write to this pipe any more, though there may be more to read."""
    poll = select.poll()
    try:
        poll.register(pipe, 0)
        return any(event & select.POLLHUP for _, event in poll.poll(0))
    except (OSError, ValueError):
        return False  # we closed our own end, and shall not know
