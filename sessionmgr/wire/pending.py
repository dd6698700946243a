"""Which of our requests still await their answers.

A plain table: no clock, no waiting. Deadlines are the caller's, who withdraws what has waited too
long. The peer may answer in any order, twice, late, or what was never asked; each is a value.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

import msgspec

from sessionmgr.errors import PendingFull
from sessionmgr.wire.json_rpc import ErrorResponse, Id, Response

T = TypeVar("T")

LIMIT: Final = 64
"""How many may be open: some servers stop answering when they are asked too much at once."""


class Asked(msgspec.Struct, Generic[T], frozen=True):
    """A request of ours, with what its asker left to be found again."""

    id: Id
    method: str
    ticket: T


class Stray(msgspec.Struct, frozen=True):
    """An answer that no open request has asked for."""

    id: Id | None
    asked_once: bool
    """Whether it was a request of ours, answered or withdrawn since."""


class Pending(Generic[T]):
    """Allocates ids for our requests and finds the request that an answer belongs to.

    Ids are 1, 2, 3…, or with a `prefix` texts, for peers that take no numbers.
    """

    def __init__(self, limit: int = LIMIT, *, prefix: str | None = None) -> None:
        self._limit = limit
        self._prefix = prefix
        self._last = 0
        self._open: dict[Id, Asked[T]] = {}

    def __len__(self) -> int:
        return len(self._open)

    @property
    def room(self) -> int:
        """How many more may be opened."""
        return self._limit - len(self._open)

    def open(self, method: str, ticket: T) -> Id:
        """Note a request and return the id to send it with.

        Raises:
            PendingFull: as many await their answers as may; nothing was noted.
        """
        if self.room <= 0:
            oldest = next(iter(self._open.values()), None)
            raise PendingFull(method, self._limit, oldest.method if oldest else method)
        self._last += 1
        id_: Id = self._last if self._prefix is None else f"{self._prefix}{self._last}"
        self._open[id_] = Asked(id_, method, ticket)
        return id_

    def settle(self, answer: Response | ErrorResponse) -> Asked[T] | Stray:
        """Return the request that was answered, which is open no more."""
        asked = None if answer.id is None else self._open.pop(answer.id, None)
        return asked or Stray(answer.id, self._was_asked(answer.id))

    def withdraw(self, id_: Id) -> Asked[T] | None:
        """Wait no longer for an answer; None if it has come, or was not waited for."""
        return self._open.pop(id_, None)

    def drain(self) -> list[Asked[T]]:
        """Return all that is open, oldest first, and forget it: nobody will answer any more."""
        left = list(self._open.values())
        self._open.clear()
        return left

    def _was_asked(self, id_: Id | None) -> bool:
        if self._prefix is None:
            return isinstance(id_, int) and 0 < id_ <= self._last
        if not isinstance(id_, str) or not id_.startswith(self._prefix):
            return False
        number = id_.removeprefix(self._prefix)
        # As long as the last one at most: turning a text of any length into a number costs.
        shaped = number.isascii() and number.isdecimal() and number[0] != "0"
        return shaped and len(number) <= len(str(self._last)) and int(number) <= self._last
