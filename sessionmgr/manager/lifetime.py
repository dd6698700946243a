"""Waits that are bounded by the manager's shutdown."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import trio

if TYPE_CHECKING:
    from collections.abc import Generator


class Lifetime:
    """The lifetime of a manager, until its block is left."""

    def __init__(self) -> None:
        self.is_over = False
        self._waiting: Final[dict[trio.CancelScope, float]] = {}

    def end(self) -> None:
        """End it: each wait goes on for its own grace, and no longer."""
        self.is_over = True
        now = trio.current_time()
        for scope, grace in self._waiting.items():
            scope.deadline = now + grace

    @contextmanager
    def and_then(self, grace: float) -> Generator[trio.CancelScope, None, None]:
        """Wait in here while the manager is there, and for some seconds after that."""
        with trio.CancelScope() as scope:
            if self.is_over:
                scope.deadline = trio.current_time() + grace
            self._waiting[scope] = grace
            try:
                yield scope
            finally:
                del self._waiting[scope]
