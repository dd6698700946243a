"""Where the lines to all guards come together: one task and one descriptor for any number."""

from __future__ import annotations

import select
from typing import TYPE_CHECKING

import trio
from trio.lowlevel import enable_ki_protection

if TYPE_CHECKING:
    from collections.abc import Callable


class SocketDispatcher:
    """Calls whoever has something to read."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._answers: dict[int, Callable[[], None]] = {}

    def add(self, descriptor: int, answer: Callable[[], None]) -> None:
        """Call `answer`, and nobody else, when there is something to read here, or the end."""
        if descriptor not in self._answers:
            self._epoll.register(descriptor, select.EPOLLIN)
        self._answers[descriptor] = answer

    def remove(self, descriptor: int) -> None:
        """Call nobody for this any more; before it is closed, for a forked copy keeps it open."""
        del self._answers[descriptor]
        self._epoll.unregister(descriptor)

    @enable_ki_protection
    async def run(self) -> None:
        """Connect, until cancelled."""
        while True:
            await trio.lowlevel.wait_readable(self._epoll.fileno())
            for descriptor, _ in self._epoll.poll(0):
                answer = self._answers.get(descriptor)
                if answer is not None:  # an answer before it may have removed it
                    answer()

    def close(self) -> None:
        """Give up the descriptor."""
        self._epoll.close()
