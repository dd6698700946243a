"""Requests to an app-server: so many at once as it is known to answer, each with an end.

An app-server that was sent a thousand at once never answers some of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, TypeVar

import trio

from sessionmgr.model import encode_json
from sessionmgr.wire import ErrorResponse, Pending, Request, Response, Stray
from sessionmgr.wire.json_rpc import encode
from sessionmgr_adapters.codex.calling import DEADLINE, OVERLOADED, PAUSE, TRIES

if TYPE_CHECKING:
    from collections.abc import Callable

    from sessionmgr.model import Json
    from sessionmgr.wire import Asked, Id
    from sessionmgr.wire.json_rpc import Message

T = TypeVar("T")

IN_FLIGHT: Final = 48
SPARE: Final = 16
FULL: Final = "what it was sent before has not been read"


class _Ours:
    """A request whose answer is waited for here."""

    def __init__(self) -> None:
        self.answered: Final = trio.Event()
        self.answer: Response | ErrorResponse | None = None


class Requests(Generic[T]):
    """What is asked through `write`, which says whether there was room for a line.

    What somebody asks on behalf of another goes with a ticket, by which the answer finds its way.
    """

    def __init__(self, write: Callable[[bytes], bool]) -> None:
        self._write: Final = write
        self._pending: Final = Pending[_Ours | T](IN_FLIGHT + SPARE)
        self._slots: Final = trio.Semaphore(IN_FLIGHT)

    async def ask(self, method: str, params: dict[str, Json]) -> Response | ErrorResponse:
        """Ask something for ourselves; no answer in time is an answer, too."""
        await self._slots.acquire()
        asked = _Ours()
        id_ = self._open(method, params, asked)
        if id_ is None:
            return ErrorResponse(None, OVERLOADED, FULL)
        try:
            with trio.move_on_after(DEADLINE):
                await asked.answered.wait()
        finally:
            self.withdraw(id_)
        late = ErrorResponse(id_, None, f"there was no answer within {DEADLINE:.0f} seconds")
        return asked.answer or late

    async def insist(self, method: str, params: dict[str, Json]) -> None:
        """Ask something, and again while it is too busy to hear of it."""
        for number in range(TRIES):
            answer = await self.ask(method, params)
            if isinstance(answer, Response) or answer.code != OVERLOADED:
                return
            await trio.sleep(PAUSE * 2**number)

    async def slot(self) -> None:
        """Wait for the right to one more request; it is used by `send` or `give_back`."""
        await self._slots.acquire()

    def give_back(self) -> None:
        """Make no use of that right."""
        self._slots.release()

    def send(self, method: str, params: dict[str, Json], ticket: T) -> Id | None:
        """Ask something for another; None if there is no room for it."""
        return self._open(method, params, ticket)

    def _open(self, method: str, params: dict[str, Json], ticket: _Ours | T) -> Id | None:
        id_ = self._pending.open(method, ticket)
        if self.say(Request(id_, method, encode_json(params))):
            return id_
        self.withdraw(id_)
        return None

    def withdraw(self, id_: Id) -> None:
        """Wait for an answer no longer, if that is still waited for."""
        if self._pending.withdraw(id_) is not None:
            self._slots.release()

    def settle(self, answer: Response | ErrorResponse) -> Asked[_Ours | T] | None:
        """Return whose answer this is; None if it was ours, or nobody has asked."""
        asked = self._pending.settle(answer)
        if isinstance(asked, Stray):
            return None
        self._slots.release()
        if isinstance(asked.ticket, _Ours):
            asked.ticket.answer = answer
            asked.ticket.answered.set()
            return None
        return asked

    def say(self, message: Message) -> bool:
        """Have a message written; False if there is no room."""
        return self._write(encode(message, version=False))

    async def say_later(self, message: Message) -> None:
        """Have a message written as soon as there is room."""
        await trio.sleep(PAUSE)
        while not self.say(message):  # noqa: ASYNC110  # that a pipe is read has no event
            await trio.sleep(PAUSE)
