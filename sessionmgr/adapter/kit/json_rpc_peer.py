"""Our side of a JSON-RPC connection: requests with ids and deadlines, and notifications.

Some servers stop answering when they receive too much at once, so the number of open requests is
limited; a request that is not answered in time gets an error as its answer. A request is either
made and awaited here (`request`), or sent on behalf of a conversation (`send`): then `resolve`
returns its ticket with the answer, and the connection pushes that to the driver as a frame.

    async with self._order:                         # a trio.Lock of the conversation
        await peer.slot()
        if peer.send("say", params, ticket) is None:  # no room: it was not sent
            ...                                       # report that to the driver, as a frame
    ...
    ticket = peer.resolve(response)                 # in the reader; None: made by `request`

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
"""Seconds to wait for an answer."""
MAX_ATTEMPTS: Final = 6
PAUSE: Final = 0.1
"""Seconds before a message that could not be written, or was refused as busy, is sent again."""
PEER_GONE: Final = "the connection has ended"
WRITE_BUFFER_FULL: Final = "the write buffer is full: the peer does not read"
BUSY: Final = -32001
"""The error code of servers for requests that they cannot serve at the moment."""


class JsonRpcPeer(Generic[T]):
    """Our side of a connection; `write` sends a line and returns whether there was room."""

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
        self._awaited: Final[dict[RpcId, Future[RpcResponse | RpcErrorResponse]]] = {}
        self._write: Final = write
        self._version: Final = version
        """Whether messages name the protocol version, as the standard requires."""
        self._busy: Final = busy
        self._slots: Final = trio.Semaphore(in_flight)
        self._granted_slots = 0
        """Number of slots that `slot` has granted and that are not used yet."""
        self._last = 0
        self._is_gone = False

    # --- requests of our own ---------------------------------------------------------------------

    async def request(
        self, method: str, params: Json, *, deadline: float = DEADLINE
    ) -> RpcResponse | RpcErrorResponse:
        """Send a request, and return the answer; there is one within `deadline` seconds.

        The deadline includes the wait for a slot.
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
            answered = self._awaited[id_] = Future[RpcResponse | RpcErrorResponse]()
            try:
                return await answered.wait()
            finally:
                self.withdraw(id_)
        return RpcErrorResponse(id_, None, f"no answer within {deadline:.0f} seconds")

    async def request_with_retries(self, method: str, params: Json) -> None:
        """Send a request whose answer makes no difference; repeat it while the peer is busy."""
        for number in range(MAX_ATTEMPTS):
            answer = await self.request(method, params)
            if isinstance(answer, RpcResponse) or answer.code != self._busy:
                return
            await trio.sleep(PAUSE * 2**number)

    def end(self) -> None:
        """Answer all waiting and later calls of `request` with an error: the peer is gone.

        Call it from `over` of the child. Drivers are notified by their own `end`.
        """
        self._is_gone = True
        for id_, answered in self._awaited.items():
            answered.set(RpcErrorResponse(id_, None, PEER_GONE))

    # --- requests on behalf of others ------------------------------------------------------------

    async def slot(self) -> None:
        """Wait for the right to one more request; `send` or `release_slot` uses it.

        Waiting tasks may continue in another order than that of their calls. Where the order
        matters, as in `Conversation.send`, hold one `trio.Lock` over `slot` and `send`.
        """
        await self._slots.acquire()
        self._granted_slots += 1

    def slot_nowait(self) -> bool:
        """Acquire that right if one is free, and return whether it was."""
        try:
            self._slots.acquire_nowait()
        except trio.WouldBlock:
            return False
        self._granted_slots += 1
        return True

    def release_slot(self) -> None:
        """Give back an unused right."""
        self._use_slot()
        self._slots.release()

    def send(self, method: str, params: Json, ticket: T) -> RpcId | None:
        """Use the right that `slot` granted to send a request on behalf of another component.

        None means that there is no room for the request: it was not sent, and its slot is free
        again.

        Raises:
            RuntimeError: No right was granted.
        """
        self._use_slot()
        id_ = self._request(method, params)
        if id_ is not None:
            self.sent[id_] = ticket
        return id_

    def withdraw(self, id_: RpcId) -> None:
        """Stop waiting for an answer, unless it has come."""
        if self._awaited.pop(id_, None) is not None or self.sent.pop(id_, None) is not None:
            self._slots.release()

    def resolve(self, answer: RpcResponse | RpcErrorResponse) -> T | None:
        """Return the ticket of the request that a response answers.

        The result is None for an answer to `request`, and for one to a request that is not open.
        """
        id_ = answer.id
        if id_ is None:
            return None
        ticket, asked = self.sent.get(id_), self._awaited.get(id_)
        self.withdraw(id_)
        if asked is not None:
            asked.set(answer)
        return ticket

    def _use_slot(self) -> None:
        if not self._granted_slots:
            raise RuntimeError("send() needs a slot: await slot() first")
        self._granted_slots -= 1

    def _request(self, method: str, params: Json) -> RpcId | None:
        self._last += 1
        if self.notify(RpcRequest(self._last, method, encode_json(params))):
            return self._last
        self._slots.release()
        return None

    # --- messages without an answer --------------------------------------------------------------

    def notify(self, message: RpcMessage) -> bool:
        """Queue a notification or an answer; return False if there is no room."""
        return self._write(encode_rpc(message, version=self._version))

    async def notify_later(self, message: RpcMessage) -> None:
        """Send a message as soon as there is room."""
        await trio.sleep(PAUSE)
        while not self.notify(message):  # noqa: ASYNC110  # that a pipe is read has no event
            await trio.sleep(PAUSE)
