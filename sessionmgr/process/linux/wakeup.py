"""Poller of descriptors that also wakes up when a child dies.

Runs in the spawner: it imports little of the standard library and nothing else.
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
    """Poller of descriptors; SIGCHLD interrupts its wait."""

    def __init__(self, *descriptors: int) -> None:
        self._signalled, self._signal = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.set_wakeup_fd(self._signal, warn_on_full_buffer=False)
        self._poll = select.poll()
        self._poll.register(self._signalled, select.POLLIN)
        for each in descriptors:
            self._poll.register(each, select.POLLIN)

    def wait(self, seconds: float | None = None) -> Iterable[int]:
        """Return the ready descriptors; none if a child died or the time is up."""
        ready = {each for each, _ in self._poll.poll(None if seconds is None else seconds * 1000)}
        if self._signalled in ready:
            ready.discard(self._signalled)
            with contextlib.suppress(BlockingIOError):
                os.read(self._signalled, 4096)
        return ready

    def unregister(self, descriptor: int) -> None:
        """Stop polling this descriptor."""
        self._poll.unregister(descriptor)

    def close(self) -> None:
        """Close the descriptors; a forked child does so before it makes a `Wakeup` of its own."""
        signal.set_wakeup_fd(-1)
        os.close(self._signalled)
        os.close(self._signal)
