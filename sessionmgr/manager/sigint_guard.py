"""The SIGINT guard: while managers are open, only the main task raises KeyboardInterrupt.

trio raises KeyboardInterrupt in the running task, at any line of it. While a manager is open that
is nearly always one of the manager's own tasks, in the middle of an append. Here the first Ctrl-C
waits for the main task, whose block then ends the runs in order. A second one before that is raised
as trio does it, so that a loop that never waits can be interrupted as well.
"""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING, Final

import trio

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    Handler = Callable[[int, FrameType | None], object]


class _InterruptGuard:
    """A SIGINT handler that wraps trio's own, for one `trio.run`."""

    def __init__(self, handler: Handler) -> None:
        self.managers = 0
        self.handler: Final = handler
        self._is_pending = False
        self._token: Final = trio.lowlevel.current_trio_token()

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self._is_pending:
            self.handler(number, frame)
            return
        self._is_pending = True
        self._token.run_sync_soon(self._turn)
        self.handler(number, None)  # without a frame, trio waits for the main task

    def _turn(self) -> None:
        # The loop is alive, so a second Ctrl-C need not be raised inside it.
        self._is_pending = False


_GUARD: Final[trio.lowlevel.RunVar[_InterruptGuard | None]] = trio.lowlevel.RunVar("guard", None)


def install_interrupt_guard() -> None:
    """Install the handler for one more manager, unless trio does not handle SIGINT."""
    guard = _GUARD.get()
    if guard is None:
        if threading.current_thread() is not threading.main_thread():
            return
        handler = signal.getsignal(signal.SIGINT)
        if not callable(handler) or not handler.__module__.startswith("trio."):
            return
        guard = _InterruptGuard(handler)
        _GUARD.set(guard)
        signal.signal(signal.SIGINT, guard)
    guard.managers += 1


def remove_interrupt_guard() -> None:
    """Remove the handler of one manager; the last one restores trio's."""
    guard = _GUARD.get()
    if guard is None:
        return
    guard.managers -= 1
    if not guard.managers:
        handler = guard.handler
        _GUARD.set(None)
        if signal.getsignal(signal.SIGINT) is guard:
            signal.signal(signal.SIGINT, handler)
