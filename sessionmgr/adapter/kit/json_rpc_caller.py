"""Requests of one driver to a JSON-RPC server, made through its conversation.

A driver sends a `Call`. The connection, whose `JsonRpcPeer` gives it an id on the wire, feeds the
`Answer` back as a frame. A mock of the connection receives the one and sends the other. A request
of the server is an `Asking`, which a `Reply` answers.
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
    """A request. `id` is the conversation's own; the connection sends another on the wire."""

    id: int
    method: str
    params: dict[str, Json]


class RpcRefusal(msgspec.Struct, frozen=True):
    """Why a request was not served."""

    code: int
    message: str

    @classmethod
    def of(cls, error: RpcErrorResponse) -> RpcRefusal:
        """Return the refusal that a response is."""
        return cls(error.code or 0, error.message)


class RpcAnswer(msgspec.Struct, frozen=True):
    """The answer to a call of ours: JSON, or a refusal."""

    call: int
    method: str
    result: bytes = b""
    refusal: RpcRefusal | None = None
    is_remembered: bool = False
    """Whether the connection has answered from memory, without the server."""

    @classmethod
    def to(cls, call: RpcCall, response: RpcResponse | RpcErrorResponse) -> RpcAnswer:
        """Return the answer to a call that a response is."""
        if isinstance(response, RpcResponse):
            return cls(call.id, call.method, response.result)
        return cls(call.id, call.method, refusal=RpcRefusal.of(response))


class PeerRequest(msgspec.Struct, frozen=True):
    """A request of theirs, which wants an answer."""

    id: RpcId
    method: str
    params: dict[str, Json] = {}


class PeerReply(msgspec.Struct, frozen=True):
    """The answer to a request of theirs: a result, or with an `error`, a refusal."""

    id: RpcId
    result: Json = None
    error: str | None = None

    @property
    def response(self) -> RpcResponse | RpcErrorResponse:
        """The message that tells them."""
        if self.error is None:
            return RpcResponse(self.id, encode_json(self.result))
        return RpcErrorResponse(self.id, NO_SUCH_METHOD, self.error)


RpcOutgoing: TypeAlias = RpcCall | PeerReply


class JsonRpcCaller:
    """Calls of one run; `is_passing` tells which refusals are temporary."""

    def __init__(
        self, send: Callable[[RpcCall], Awaitable[None]], is_passing: Callable[[RpcRefusal], bool]
    ) -> None:
        self.is_deaf = False
        """Whether a call was not answered in time."""
        self._send: Final = send
        self._is_passing: Final = is_passing
        self._open: Final[dict[int, Future[RpcAnswer]]] = {}
        self._last = 0

    def __len__(self) -> int:
        """Return the number of calls that wait for an answer."""
        return len(self._open)

    async def call(self, method: str, params: dict[str, Json]) -> RpcAnswer:
        """Call a method and return the answer; try again while it is refused temporarily."""
        answer = await self._call(method, params)
        for number in range(MAX_ATTEMPTS):
            if answer.refusal is None or not self._is_passing(answer.refusal):
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
        self.is_deaf = True
        message = f"there was no answer within {DEADLINE:.0f} seconds"
        return RpcAnswer(number, method, refusal=RpcRefusal(0, message))

    def resolve(self, answer: RpcAnswer) -> None:
        """Hand an answer to the task that waits for it."""
        answered = self._open.get(answer.call)
        if answered is not None:
            answered.set(answer)
