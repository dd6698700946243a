"""Dispatcher of the sockets to all reapers: one task and one descriptor for any number of them."""

from __future__ import annotations

import select
from typing import TYPE_CHECKING

import trio
from trio.lowlevel import enable_ki_protection

if TYPE_CHECKING:
    from collections.abc import Callable


class SocketDispatcher:
    """Dispatcher that calls the reader of each socket that has data."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._answers: dict[int, Callable[[], None]] = {}

    def add(self, descriptor: int, answer: Callable[[], None]) -> None:
        """Call `answer` when this socket has data or has ended, instead of an earlier function."""
        if descriptor not in self._answers:
            self._epoll.register(descriptor, select.EPOLLIN)
        self._answers[descriptor] = answer

    def remove(self, descriptor: int) -> None:
        """Unregister a socket before it is closed, because a forked process may keep it open."""
        del self._answers[descriptor]
        self._epoll.unregister(descriptor)

    @enable_ki_protection
    async def run(self) -> None:
        """Dispatch until cancelled."""
        while True:
            await trio.lowlevel.wait_readable(self._epoll.fileno())
            for descriptor, _ in self._epoll.poll(0):
                answer = self._answers.get(descriptor)
                if answer is not None:  # an earlier call may have removed it
                    answer()

    def close(self) -> None:
        """Close the descriptor."""
        self._epoll.close()
