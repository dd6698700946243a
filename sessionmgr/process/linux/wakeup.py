"""Waiting for descriptors, and being woken when a child dies.

Runs in the warden: the standard library, and little of it.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class Wakeup:
    """Says which descriptors are ready; wakes for the death of a child too."""

    def __init__(self, *descriptors: int) -> None:
        self._ears, self._bell = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.set_wakeup_fd(self._bell, warn_on_full_buffer=False)
        self._poll = select.poll()
        self._poll.register(self._ears, select.POLLIN)
        for each in descriptors:
            self._poll.register(each, select.POLLIN)

    def wait(self, seconds: float | None = None) -> Iterable[int]:
        """Return which are ready; none of them if a child died, or time is up."""
        ready = {each for each, _ in self._poll.poll(None if seconds is None else seconds * 1000)}
        if self._ears in ready:
            ready.discard(self._ears)
            with contextlib.suppress(BlockingIOError):
                os.read(self._ears, 4096)
        return ready

    def unregister(self, descriptor: int) -> None:
        """Look at this one no more."""
        self._poll.unregister(descriptor)

    def close(self) -> None:
        """Give up the descriptors; a forked child does so before it makes an alarm of its own."""
        signal.set_wakeup_fd(-1)
        os.close(self._ears)
        os.close(self._bell)
