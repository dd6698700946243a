"""The connection to the client: JSON-RPC messages, one per line, on two streams.

One task writes all lines, so that no cancellation cuts a line. Lines wait in a short queue: a task
with more to send waits until the client reads, and no line is lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.acp_server.errors import INTERNAL_ERROR, AcpRequestRefused
from sessionmgr.adapter.kit import Future
from sessionmgr.model import UnreadableJson, encode_json, parse_json
from sessionmgr.wire import (
    LIMIT,
    LineDecoder,
    RpcErrorResponse,
    RpcNotification,
    RpcRequest,
    RpcResponse,
    decode_rpc,
    encode_rpc,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sessionmgr.model import Json
    from sessionmgr.wire import DecodedRpc, Line, RpcId, RpcMessage

QUEUED: Final = 256
"""Lines that wait for the client."""
READ_SIZE: Final = 65_536
WRITE_SIZE: Final = 262_144
"""Bytes of lines that one write may join."""


class ClientConnection:
    """Connection to a client that sends requests and answers ours."""

    def __init__(self, source: trio.abc.ReceiveStream, sink: trio.abc.SendStream) -> None:
        self._source: Final = source
        self._sink: Final = sink
        self._lines, self._queued = trio.open_memory_channel[bytes](QUEUED)
        self._asked: Final[dict[RpcId, Future[RpcResponse | RpcErrorResponse]]] = {}
        self._last = 0
        self.is_gone: Final = trio.Event()
        """Set when the client reads no more."""
        self.is_written: Final = trio.Event()
        """Set when all lines are written, after `finish`."""

    # --- reading ---------------------------------------------------------------------------------

    async def read(self, receive: Callable[[Line, list[DecodedRpc]], Awaitable[None]]) -> None:
        """Pass each line and its messages to `receive`, until the client closes its side."""
        decoder = LineDecoder(LIMIT)
        while data := await self._receive():
            for line in decoder.feed(data):
                await receive(line, decode_rpc(line))
        for line in decoder.close():
            await receive(line, decode_rpc(line))

    async def _receive(self) -> bytes | bytearray:
        try:
            return await self._source.receive_some(READ_SIZE)
        except trio.BrokenResourceError:
            return b""

    def resolve(self, answer: RpcResponse | RpcErrorResponse) -> None:
        """Pass an answer to the task that waits for it; one without such a task is ignored."""
        asked = None if answer.id is None else self._asked.pop(answer.id, None)
        if asked is not None:
            asked.set(answer)

    # --- writing ---------------------------------------------------------------------------------

    async def write(self) -> None:
        """Write the queued lines until `finish`; without a reader, discard them."""
        async with self._queued:
            async for line in self._queued:
                lines = [line]
                size = len(line)
                while size < WRITE_SIZE and (more := self._next_line()):
                    lines.append(more)
                    size += len(more)
                if self.is_gone.is_set():
                    continue
                try:
                    await self._sink.send_all(b"".join(lines))
                except (trio.BrokenResourceError, OSError):
                    self.is_gone.set()
        self.is_written.set()

    def _next_line(self) -> bytes:
        try:
            return self._queued.receive_nowait()
        except (trio.WouldBlock, trio.EndOfChannel):
            return b""

    async def finish(self) -> None:
        """Accept no more lines; `write` ends after those that are queued."""
        await self._lines.aclose()

    async def send(self, message: RpcMessage) -> None:
        """Queue a message, and wait while the queue is full."""
        await self._lines.send(encode_rpc(message))

    async def notify(self, method: str, params: Json) -> None:
        """Send a notification."""
        await self.send(RpcNotification(method, encode_json(params)))

    async def request(self, method: str, params: Json) -> Json:
        """Send a request, and return its result; a cancellation withdraws it.

        Raises:
            AcpRequestRefused: The client answers with an error.
        """
        self._last += 1
        id_ = self._last
        asked = self._asked[id_] = Future[RpcResponse | RpcErrorResponse]()
        is_sent = False
        try:
            await self.send(RpcRequest(id_, method, encode_json(params)))
            is_sent = True
            answer = await asked.wait()
        finally:
            if self._asked.pop(id_, None) is not None and is_sent:
                self._withdraw(id_)
        if isinstance(answer, RpcErrorResponse):
            raise AcpRequestRefused(answer.code or INTERNAL_ERROR, answer.message)
        result = parse_json(answer.result)
        return {} if isinstance(result, UnreadableJson) else result

    def _withdraw(self, id_: RpcId) -> None:
        line = encode_rpc(RpcNotification("$/cancel_request", encode_json({"requestId": id_})))
        try:
            self._lines.send_nowait(line)
        except (trio.WouldBlock, trio.ClosedResourceError, trio.BrokenResourceError):
            return  # the end of the turn also withdraws it
