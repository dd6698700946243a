"""Our side of a JSON-RPC connection: requests with ids and deadlines, so many at once, notices.

Some servers stop answering when they are sent too much at once, so the requests in flight are
bounded; one that does not get its answer in time gets an error as its answer. A request can be made
here, and waited for (`ask`), or on behalf of a conversation (`send`): then its ticket comes back
with the answer (`settle`), and the connection pushes that to the driver as a frame.

What the peer requests of us, and its notifications, are frames: see `RequestHandler`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, TypeVar

import trio

from sessionmgr.model import encode_json
from sessionmgr.wire import ErrorResponse, Pending, Request, Response, Stray
from sessionmgr.wire.json_rpc import encode

if TYPE_CHECKING:
    from collections.abc import Callable

    from sessionmgr.model import Json
    from sessionmgr.wire import Asked, Id
    from sessionmgr.wire.json_rpc import Message

T = TypeVar("T")

IN_FLIGHT: Final = 48
SPARE: Final = 16
DEADLINE: Final = 60.0
"""Seconds for an answer."""
TRIES: Final = 6
PAUSE: Final = 0.1
"""Seconds before what could not be written, or was refused for the moment, is tried again."""
FULL: Final = "what it was sent before has not been read"
BUSY: Final = -32001
"""The code with which servers refuse what they cannot serve at the moment."""


class _Ours:
    """A request whose answer is waited for here."""

    def __init__(self) -> None:
        self.answered: Final = trio.Event()
        self.answer: Response | ErrorResponse | None = None


class JsonRpcPeer(Generic[T]):
    """Requests and notices through `write`, which says whether there was room for a line."""

    def __init__(
        self,
        write: Callable[[bytes], bool],
        *,
        in_flight: int = IN_FLIGHT,
        version: bool = True,
        busy: int = BUSY,
    ) -> None:
        self._write: Final = write
        self._version: Final = version
        """Whether messages name their version, as the standard has it."""
        self._busy: Final = busy
        self._pending: Final = Pending[_Ours | T](in_flight + SPARE)
        self._slots: Final = trio.Semaphore(in_flight)

    # --- requests of our own ---------------------------------------------------------------------

    async def ask(
        self, method: str, params: Json, *, deadline: float = DEADLINE
    ) -> Response | ErrorResponse:
        """Request something, and return the answer; there is one within `deadline` seconds."""
        await self._slots.acquire()
        asked = _Ours()
        id_ = self._open(method, params, asked)
        if id_ is None:
            return ErrorResponse(None, self._busy, FULL)
        try:
            with trio.move_on_after(deadline):
                await asked.answered.wait()
        finally:
            self.withdraw(id_)
        late = ErrorResponse(id_, None, f"there was no answer within {deadline:.0f} seconds")
        return asked.answer or late

    async def insist(self, method: str, params: Json) -> None:
        """Request something whose answer makes no difference, and again while the peer is busy."""
        for number in range(TRIES):
            answer = await self.ask(method, params)
            if isinstance(answer, Response) or answer.code != self._busy:
                return
            await trio.sleep(PAUSE * 2**number)

    # --- requests on behalf of others ------------------------------------------------------------

    async def slot(self) -> None:
        """Wait for the right to one more request; `send` or `give_back` uses it."""
        await self._slots.acquire()

    def give_back(self) -> None:
        """Make no use of that right."""
        self._slots.release()

    def send(self, method: str, params: Json, ticket: T) -> Id | None:
        """Request something on behalf of another; None if there is no room for it."""
        return self._open(method, params, ticket)

    def withdraw(self, id_: Id) -> None:
        """Wait for an answer no longer, if that is still waited for."""
        if self._pending.withdraw(id_) is not None:
            self._slots.release()

    def settle(self, answer: Response | ErrorResponse) -> Asked[_Ours | T] | None:
        """Return whose answer this is; None if it was asked here, or by nobody."""
        asked = self._pending.settle(answer)
        if isinstance(asked, Stray):
            return None
        self._slots.release()
        if isinstance(asked.ticket, _Ours):
            asked.ticket.answer = answer
            asked.ticket.answered.set()
            return None
        return asked

    def _open(self, method: str, params: Json, ticket: _Ours | T) -> Id | None:
        id_ = self._pending.open(method, ticket)
        if self.say(Request(id_, method, encode_json(params))):
            return id_
        self.withdraw(id_)
        return None

    # --- what wants no answer --------------------------------------------------------------------

    def say(self, message: Message) -> bool:
        """Have a notification or an answer written; False if there is no room."""
        return self._write(encode(message, version=self._version))

    async def say_later(self, message: Message) -> None:
        """Have a message written as soon as there is room."""
        await trio.sleep(PAUSE)
        while not self.say(message):  # noqa: ASYNC110  # that a pipe is read has no event
            await trio.sleep(PAUSE)
