"""Our side of a JSON-RPC connection: requests with ids and deadlines, and notifications.

Some servers stop answering when they are sent too much at once, so the number of open requests is
limited; one that is not answered in time gets an error as its answer. A request is either made and
awaited here (`ask`), or sent on behalf of a conversation (`send`): then its ticket comes back with
the answer (`settle`), and the connection pushes that to the driver as a frame.

    async with self._order:                         # a trio.Lock of the conversation
        await peer.slot()
        if peer.send("say", params, ticket) is None:  # no room: it was not made
            ...                                       # tell the driver, by a frame
    ...
    ticket = peer.settle(response)                  # in the reader; None: not on behalf of another

The peer's own requests and notifications are frames: see `RequestHandler`. `JsonRpcConnection` does
all of this for a child with several sessions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, TypeVar

import trio

from sessionmgr.adapter.kit.future import Future
from sessionmgr.model import encode_json
from sessionmgr.wire import RpcErrorResponse, RpcRequest, RpcResponse, encode_rpc

if TYPE_CHECKING:
    from collections.abc import Callable

    from sessionmgr.model import Json
    from sessionmgr.wire import RpcId, RpcMessage

T = TypeVar("T")

IN_FLIGHT: Final = 48
DEADLINE: Final = 60.0
"""Seconds for an answer."""
MAX_ATTEMPTS: Final = 6
PAUSE: Final = 0.1
"""Seconds before what could not be written, or was refused for the moment, is tried again."""
PEER_GONE: Final = "the other side is gone"
WRITE_BUFFER_FULL: Final = "what it was sent before has not been read"
BUSY: Final = -32001
"""The code with which servers refuse what they cannot serve at the moment."""


class JsonRpcPeer(Generic[T]):
    """Requests and notifications through `write`, which returns whether there was room."""

    def __init__(
        self,
        write: Callable[[bytes], bool],
        *,
        in_flight: int = IN_FLIGHT,
        version: bool = True,
        busy: int = BUSY,
    ) -> None:
        self.sent: Final[dict[RpcId, T]] = {}
        """The tickets of the open requests that were sent on behalf of others, by their ids."""
        self._asked: Final[dict[RpcId, Future[RpcResponse | RpcErrorResponse]]] = {}
        self._write: Final = write
        self._version: Final = version
        """Whether messages name their version, as the standard has it."""
        self._busy: Final = busy
        self._slots: Final = trio.Semaphore(in_flight)
        self._rights = 0
        """Slots that were given by `slot`, and not used yet."""
        self._last = 0
        self._is_gone = False

    # --- requests of our own ---------------------------------------------------------------------

    async def request(
        self, method: str, params: Json, *, deadline: float = DEADLINE
    ) -> RpcResponse | RpcErrorResponse:
        """Request something, and return the answer; there is one within `deadline` seconds.

        The wait for a slot is a part of these.
        """
        id_: RpcId | None = None
        with trio.move_on_after(deadline):
            await self._slots.acquire()
            if self._is_gone:
                self._slots.release()
                return RpcErrorResponse(None, None, PEER_GONE)
            id_ = self._request(method, params)
            if id_ is None:
                return RpcErrorResponse(None, self._busy, WRITE_BUFFER_FULL)
            answered = self._asked[id_] = Future[RpcResponse | RpcErrorResponse]()
            try:
                return await answered.wait()
            finally:
                self.withdraw(id_)
        return RpcErrorResponse(id_, None, f"there was no answer within {deadline:.0f} seconds")

    async def request_with_retries(self, method: str, params: Json) -> None:
        """Request something whose answer makes no difference, and again while the peer is busy."""
        for number in range(MAX_ATTEMPTS):
            answer = await self.request(method, params)
            if isinstance(answer, RpcResponse) or answer.code != self._busy:
                return
            await trio.sleep(PAUSE * 2**number)

    def end(self) -> None:
        """Answer all that `ask` waits for, now and from now on: the peer is gone.

        Call it from `over` of the child. Drivers learn of it by their own `end`.
        """
        self._is_gone = True
        for id_, answered in self._asked.items():
            answered.set(RpcErrorResponse(id_, None, PEER_GONE))

    # --- requests on behalf of others ------------------------------------------------------------

    async def slot(self) -> None:
        """Wait for the right to one more request; `send` or `give_back` uses it.

        Tasks that wait may go on in another order than that of their calls. Where that order
        counts, as in `Conversation.send`, hold one `trio.Lock` over `slot` and `send`.
        """
        await self._slots.acquire()
        self._rights += 1

    def slot_nowait(self) -> bool:
        """Take that right if there is one at once, and return whether there was."""
        try:
            self._slots.acquire_nowait()
        except trio.WouldBlock:
            return False
        self._rights += 1
        return True

    def release_slot(self) -> None:
        """Make no use of that right."""
        self._use_slot()
        self._slots.release()

    def send(self, method: str, params: Json, ticket: T) -> RpcId | None:
        """Use the right that `slot` gave to request something on behalf of another.

        None means that there is no room for the request: it was not made, and its slot is free
        again.

        Raises:
            RuntimeError: There is no such right.
        """
        self._use_slot()
        id_ = self._request(method, params)
        if id_ is not None:
            self.sent[id_] = ticket
        return id_

    def withdraw(self, id_: RpcId) -> None:
        """Stop waiting for an answer, unless it has come."""
        if self._asked.pop(id_, None) is not None or self.sent.pop(id_, None) is not None:
            self._slots.release()

    def resolve(self, answer: RpcResponse | RpcErrorResponse) -> T | None:
        """Return the ticket of the request that is answered.

        None is returned for an answer to a request made here, or to none that is open.
        """
        id_ = answer.id
        if id_ is None:
            return None
        ticket, asked = self.sent.get(id_), self._asked.get(id_)
        self.withdraw(id_)
        if asked is not None:
            asked.set(answer)
        return ticket

    def _use_slot(self) -> None:
        if not self._rights:
            raise RuntimeError("a request on behalf of another has a slot: await slot() first")
        self._rights -= 1

    def _request(self, method: str, params: Json) -> RpcId | None:
        self._last += 1
        if self.notify(RpcRequest(self._last, method, encode_json(params))):
            return self._last
        self._slots.release()
        return None

    # --- what wants no answer --------------------------------------------------------------------

    def notify(self, message: RpcMessage) -> bool:
        """Have a notification or an answer written; False if there is no room."""
        return self._write(encode_rpc(message, version=self._version))

    async def notify_later(self, message: RpcMessage) -> None:
        """Have a message written as soon as there is room."""
        await trio.sleep(PAUSE)
        while not self.notify(message):  # noqa: ASYNC110  # that a pipe is read has no event
            await trio.sleep(PAUSE)
