"""The server: it reads the client's messages, and runs each request in a task of its own.

Work that depends on the order of the messages, such as the queue of prompts, is done when the
message is read; only the rest of a request runs in its task.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

import trio

from sessionmgr.acp_server.agent import AcpAgent
from sessionmgr.acp_server.connection import ClientConnection
from sessionmgr.acp_server.errors import (
    BUSY,
    CANCELLED,
    INVALID_REQUEST,
    PARSE_ERROR,
    AcpRequestRefused,
    refusal_of,
)
from sessionmgr.acp_server.params import CancelRequestParams, JsonObject, read_params
from sessionmgr.model import UnreadableJson, encode_json, parse_json
from sessionmgr.wire import (
    LIMIT,
    MalformedFrame,
    NoiseLine,
    OversizedFrame,
    RpcErrorResponse,
    RpcNotification,
    RpcRequest,
    RpcResponse,
)

if TYPE_CHECKING:
    from sessionmgr.acp_server.offer import AgentOffer
    from sessionmgr.manager import Manager
    from sessionmgr.wire import DecodedRpc, Line, RpcId

MOST_REQUESTS: Final = 1024
"""Requests that may be open."""
GRACE: Final = 10.0
"""Seconds for the answers to open requests, after the client has closed its side."""
DRAIN: Final = 2.0
"""Seconds for the client to read the last lines."""

_Scopes: TypeAlias = "dict[RpcId | None, trio.CancelScope]"
Respond: TypeAlias = Callable[[JsonObject], Awaitable[None]]


class AcpServer:
    """Server of one client on two streams."""

    def __init__(
        self,
        manager: Manager,
        offer: AgentOffer,
        source: trio.abc.ReceiveStream,
        sink: trio.abc.SendStream,
    ) -> None:
        self._connection: Final = ClientConnection(source, sink)
        self._agent: Final = AcpAgent(manager, offer, self._connection)
        self._reading: Final = trio.CancelScope()
        self._open: Final[_Scopes] = {}
        self._tasks: trio.Nursery | None = None
        self._open_count = 0
        self._is_idle = trio.Event()

    def stop(self) -> None:
        """Begin to end all turns and the server, as if the client had closed its side."""
        self._reading.cancel()

    async def run(self) -> None:
        """Serve until the client closes its side, or until `stop`; all turns end before that."""
        async with trio.open_nursery() as writing:
            writing.start_soon(self._connection.write)
            writing.start_soon(self._stop_without_reader)
            try:
                async with trio.open_nursery() as self._tasks:
                    with self._reading:
                        await self._connection.read(self._receive)
                    await self._end_requests()
                    self._tasks.cancel_scope.cancel()
            finally:
                self._agent.close()
                with trio.CancelScope(shield=True):
                    await self._connection.finish()
            await self._drain(writing)

    async def _stop_without_reader(self) -> None:
        await self._connection.is_gone.wait()
        self._reading.cancel()

    async def _end_requests(self) -> None:
        """End all turns, and give the other requests time for their answers."""
        self._agent.cancel()
        with trio.move_on_after(GRACE):
            await trio.lowlevel.checkpoint()
            while self._open_count:
                self._is_idle = trio.Event()
                await self._is_idle.wait()

    async def _drain(self, writing: trio.Nursery) -> None:
        with trio.move_on_after(DRAIN):
            await self._connection.is_written.wait()
        writing.cancel_scope.cancel()

    # --- messages --------------------------------------------------------------------------------

    async def _receive(self, line: Line, messages: list[DecodedRpc]) -> None:
        if isinstance(line, bytes) and line.lstrip().startswith(b"["):
            why = "batches are not supported; send one message per line"
            await self._refuse(None, AcpRequestRefused(INVALID_REQUEST, why))
            return
        for message in messages:
            match message:
                case RpcRequest():
                    await self._start(message)
                case RpcNotification():
                    self._notice(message)
                case RpcResponse() | RpcErrorResponse():
                    self._connection.resolve(message)
                case _:
                    await self._refuse(None, _malformed(message))

    async def _start(self, request: RpcRequest) -> None:
        """Begin a request: what depends on the order now, the rest in a task."""
        assert self._tasks is not None
        if self._open_count >= MOST_REQUESTS:
            message = f"{self._open_count} requests are open; wait for an answer"
            await self._refuse(request.id, AcpRequestRefused(BUSY, message))
            return
        respond = partial(self._respond_early, request.id)
        try:
            work = self._agent.handle(request, respond)
        except Exception as error:  # the answer to this request alone  # noqa: BLE001
            refusal = refusal_of(error)
            self._start_task(request.id, partial(self._refuse, request.id, refusal))
        else:
            self._start_task(request.id, partial(self._serve, request.id, work))

    def _start_task(self, id_: RpcId | None, work: Callable[[], Awaitable[None]]) -> None:
        assert self._tasks is not None
        self._open_count += 1
        scope = self._open[id_] = trio.CancelScope()

        async def task() -> None:
            try:
                with scope:
                    await work()
                if scope.cancelled_caught:
                    await self._refuse(id_, AcpRequestRefused(CANCELLED, "request cancelled"))
            finally:
                self._open_count -= 1
                if self._open.get(id_) is scope:
                    del self._open[id_]
                if not self._open_count:
                    self._is_idle.set()

        self._tasks.start_soon(task)

    async def _serve(
        self, id_: RpcId | None, work: Callable[[], Awaitable[JsonObject | None]]
    ) -> None:
        try:
            result = await work()
        except Exception as error:  # the answer to this request alone  # noqa: BLE001
            await self._refuse(id_, refusal_of(error))
            return
        if result is not None:  # otherwise it has responded already
            await self._respond(id_, result)

    async def _respond_early(self, id_: RpcId | None, result: JsonObject) -> None:
        """Answer a request whose task goes on; it can no longer be cancelled by its id."""
        self._open.pop(id_, None)
        await self._respond(id_, result)

    async def _respond(self, id_: RpcId | None, result: JsonObject) -> None:
        await self._connection.send(RpcResponse(id_, encode_json(result)))

    async def _refuse(self, id_: RpcId | None, refusal: AcpRequestRefused) -> None:
        data = encode_json(refusal.data) if refusal.data else b""
        await self._connection.send(RpcErrorResponse(id_, refusal.code, str(refusal), data))

    def _notice(self, notification: RpcNotification) -> None:
        """Handle a notification; one that is invalid or unknown has no answer."""
        try:
            if notification.method == "$/cancel_request":
                self._cancel(read_params(notification.params, CancelRequestParams).request_id)
            else:
                self._agent.notice(notification)
        except AcpRequestRefused as refusal:
            self._agent.log_refusal(notification.method, refusal)

    def _cancel(self, id_: RpcId | None) -> None:
        """Cancel a request: a prompt as `session/cancel` does, another one at once."""
        if not self._agent.cancel_prompt(id_) and id_ in self._open:
            self._open[id_].cancel()


def _malformed(message: MalformedFrame | NoiseLine | OversizedFrame) -> AcpRequestRefused:
    match message:
        case OversizedFrame(bytes_seen=seen):
            limit = f"{LIMIT // 1024 // 1024} MiB"
            why = f"a line of {seen} bytes; the limit is {limit}"
            return AcpRequestRefused(INVALID_REQUEST, why)
        case MalformedFrame(why=why) if not isinstance(parse_json(message.line), UnreadableJson):
            return AcpRequestRefused(INVALID_REQUEST, f"not a JSON-RPC message: {why}")
        case MalformedFrame(why=why):
            return AcpRequestRefused(PARSE_ERROR, f"not JSON: {why}")
        case NoiseLine():
            return AcpRequestRefused(PARSE_ERROR, "not JSON")
