"""Requests of one driver to a JSON-RPC server, made through its conversation.

A driver sends an `RpcCall`. The connection, whose `JsonRpcPeer` assigns an id on the wire, feeds
the `RpcAnswer` back as a frame. A mock of the connection receives the call and sends the answer. A
request of the server is a `PeerRequest`, which a `PeerReply` answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
import trio

from sessionmgr.adapter.kit.future import Future
from sessionmgr.adapter.kit.json_rpc_peer import DEADLINE, MAX_ATTEMPTS, PAUSE
from sessionmgr.model import Json, encode_json
from sessionmgr.wire import RpcErrorResponse, RpcId, RpcResponse

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

NO_SUCH_METHOD: Final = -32601


class RpcCall(msgspec.Struct, frozen=True):
    """Request to the server. Its `id` is the conversation's own; the connection assigns another."""

    id: int
    method: str
    params: dict[str, Json]


class RpcRefusal(msgspec.Struct, frozen=True):
    """Refusal of a request."""

    code: int
    message: str

    @classmethod
    def of(cls, error: RpcErrorResponse) -> RpcRefusal:
        """Return the refusal for an error response."""
        return cls(error.code or 0, error.message)


class RpcAnswer(msgspec.Struct, frozen=True):
    """Answer to a call of ours: JSON, or a refusal."""

    call: int
    method: str
    result: bytes = b""
    refusal: RpcRefusal | None = None
    is_remembered: bool = False
    """Whether the connection has answered from its cache, without the server."""

    @classmethod
    def to(cls, call: RpcCall, response: RpcResponse | RpcErrorResponse) -> RpcAnswer:
        """Return the answer to a call for a response."""
        if isinstance(response, RpcResponse):
            return cls(call.id, call.method, response.result)
        return cls(call.id, call.method, refusal=RpcRefusal.of(response))


class PeerRequest(msgspec.Struct, frozen=True):
    """Request of the server, which needs an answer."""

    id: RpcId
    method: str
    params: dict[str, Json] = {}


class PeerReply(msgspec.Struct, frozen=True):
    """Answer to a request of the server: a result or, with an `error`, a refusal."""

    id: RpcId
    result: Json = None
    error: str | None = None

    @property
    def response(self) -> RpcResponse | RpcErrorResponse:
        """The response on the wire."""
        if self.error is None:
            return RpcResponse(self.id, encode_json(self.result))
        return RpcErrorResponse(self.id, NO_SUCH_METHOD, self.error)


RpcOutgoing: TypeAlias = RpcCall | PeerReply


class JsonRpcCaller:
    """Caller of the server's methods for one run; `is_temporary` classifies a refusal."""

    def __init__(
        self, send: Callable[[RpcCall], Awaitable[None]], is_temporary: Callable[[RpcRefusal], bool]
    ) -> None:
        self.is_unresponsive = False
        """Whether a call was not answered in time."""
        self._send: Final = send
        self._is_temporary: Final = is_temporary
        self._open: Final[dict[int, Future[RpcAnswer]]] = {}
        self._last = 0

    def __len__(self) -> int:
        """Return the number of calls that wait for an answer."""
        return len(self._open)

    async def call(self, method: str, params: dict[str, Json]) -> RpcAnswer:
        """Call a method and return the answer; try again while it is refused temporarily."""
        answer = await self._call(method, params)
        for number in range(MAX_ATTEMPTS):
            if answer.refusal is None or not self._is_temporary(answer.refusal):
                break
            await trio.sleep(PAUSE * 2**number)
            answer = await self._call(method, params)
        return answer

    async def _call(self, method: str, params: dict[str, Json]) -> RpcAnswer:
        self._last += 1
        number = self._last
        answered = self._open[number] = Future[RpcAnswer]()
        try:
            with trio.move_on_after(DEADLINE):
                await self._send(RpcCall(number, method, params))
                return await answered.wait()
        finally:
            self._open.pop(number, None)
        self.is_unresponsive = True
        message = f"no answer within {DEADLINE:.0f} seconds"
        return RpcAnswer(number, method, refusal=RpcRefusal(0, message))

    def resolve(self, answer: RpcAnswer) -> None:
        """Pass an answer to the task that waits for it."""
        answered = self._open.get(answer.call)
        if answered is not None:
            answered.set(answer)
