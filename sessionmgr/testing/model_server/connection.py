"""A connection to the model server: it reads requests and plays their replies, one after the other.

The connection is read while an answer is written. A client that disconnects therefore ends an
answer that hangs, and the log records that the client did not read it to the end.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.testing.model_server.http import (
    CONTINUE,
    BadRequest,
    HttpRequest,
    RequestDecoder,
    answer_head,
)
from sessionmgr.testing.model_server.request_log import Exchange, RequestLog

if TYPE_CHECKING:
    from sessionmgr.testing.model_server.responder import Send

_READ: Final = 64 << 10
_AHEAD: Final = 1 << 20
"""Maximum number of bytes that a client may send while it receives an answer."""

Answer = Callable[[HttpRequest, Exchange, "Send"], Awaitable[bool]]
"""Answers one request, and returns whether the connection can be used again."""


class ServerConnection:
    """A connection, from its first request to its last."""

    def __init__(self, stream: trio.SocketStream, log: RequestLog, answer: Answer) -> None:
        self._stream: Final = stream
        self._log: Final = log
        self._answer: Final = answer
        self._decoder: Final = RequestDecoder()

    async def run(self) -> None:
        """Serve it until the client or the script closes it."""
        try:
            while True:
                http = await self._next()
                if http is None or not await self._serve(http) or not http.keep_alive:
                    return
        except BadRequest as refused:
            why = str(refused).encode()
            head = answer_head(refused.status, [("connection", "close")], length=len(why))
            await self._stream.send_all(head + why)

    async def _next(self) -> HttpRequest | None:
        while True:
            http = self._decoder.next()
            if http is not None:
                return http
            if self._decoder.wants_continue:
                self._decoder.wants_continue = False
                await self._stream.send_all(CONTINUE)
            data = await self._stream.receive_some(_READ)
            if not data:
                return None
            self._decoder.feed(data)

    async def _serve(self, http: HttpRequest) -> bool:
        exchange = self._log.begin(http)
        again = False
        gone = trio.Event()
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._watch, gone, nursery.cancel_scope)
                try:
                    again = await self._answer(http, exchange, self._stream.send_all)
                except trio.BrokenResourceError:
                    gone.set()  # the writer may notice the end before the reader
                    raise
                nursery.cancel_scope.cancel()
        finally:
            # Only now: a client may disconnect as soon as it has the whole answer.
            if gone.is_set() and exchange.ending == "open":
                exchange.ending = "left"
            self._log.end(exchange)
        return again and exchange.ending == "whole"

    @trio.lowlevel.enable_ki_protection
    async def _watch(self, gone: trio.Event, answering: trio.CancelScope) -> None:
        ahead = 0
        while ahead <= _AHEAD:
            try:
                data = await self._stream.receive_some(_READ)
            except trio.BrokenResourceError:
                data = b""
            if not data:
                gone.set()
                answering.cancel()
                return
            ahead += len(data)
            self._decoder.feed(data)
