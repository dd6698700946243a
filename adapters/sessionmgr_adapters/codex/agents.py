"""The agents that a run has called, each in a thread of its own, and whether they are at work."""

from __future__ import annotations

from typing import Final


class Agents:
    """What is known of them, however deep they were called."""

    def __init__(self) -> None:
        self.working: Final[dict[str, str]] = {}
        """The turns that are on, by thread; "" for one that is about to begin."""
        self.addressed: Final[set[str]] = set()
        """Those that were told something, and may begin a turn for that or not."""
        self.loaded: Final[dict[str, None]] = {}
        """The threads that are there, the first one called first."""
        self._callers: Final[dict[str, str]] = {}
        self._have_begun: Final[set[str]] = set()

    @property
    def were_called(self) -> bool:
        """Whether there were any."""
        return bool(self._callers)

    def caller(self, thread: str) -> str:
        """Return by which call a thread was begun; "" if that is not known."""
        return self._callers.get(thread, "")

    def call(self, thread: str, call: str = "", *, works: bool = False) -> None:
        """Note that an agent was called, by a call if that is known.

        With `works`, its turn is about to begin.
        """
        self.loaded[thread] = None
        if call:
            self._callers.setdefault(thread, call)
        if works and thread not in self._have_begun:
            self.working.setdefault(thread, "")

    def address(self, thread: str) -> None:
        """Note that an agent was told something: Codex does not say whether it is to act on it."""
        self.addressed.add(thread)

    def begin(self, thread: str, turn: str) -> None:
        """Note that an agent's turn begins."""
        self.loaded[thread] = None
        self._have_begun.add(thread)
        self.addressed.discard(thread)
        self.working[thread] = turn

    def end(self, thread: str, turn: str) -> bool:
        """Note that an agent's turn is over; False if that was not the one that is on."""
        if self.working.get(thread) not in ("", turn):
            return False
        del self.working[thread]
        return True

    def close(self, thread: str) -> None:
        """Note that a thread is there no more."""
        self.loaded.pop(thread, None)
        self.working.pop(thread, None)
        self.addressed.discard(thread)
