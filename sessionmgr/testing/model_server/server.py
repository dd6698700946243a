"""The model server: plays scripts as a model, on loopback."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import msgspec
import trio

from sessionmgr.testing.model_server.anthropic import AnthropicDialect
from sessionmgr.testing.model_server.chat import ChatDialect
from sessionmgr.testing.model_server.choose_reply import PlannedReply, Scripts, choose_reply
from sessionmgr.testing.model_server.connection import ServerConnection
from sessionmgr.testing.model_server.dialect import ApiDialect, PlainAnswer
from sessionmgr.testing.model_server.gemini import GeminiDialect
from sessionmgr.testing.model_server.http import HttpRequest
from sessionmgr.testing.model_server.request import ModelRequest
from sessionmgr.testing.model_server.request_log import Exchange, RequestLog
from sessionmgr.testing.model_server.responder import Responder, Send, send_plain_answer
from sessionmgr.testing.model_server.responses import ResponsesDialect
from sessionmgr.testing.model_server.script import ModelScript

DIALECTS: Final[Sequence[ApiDialect]] = (
    AnthropicDialect(),
    ResponsesDialect(),
    ChatDialect(),
    GeminiDialect(),
)
_COUNTED: Final = 10_000
"""Number of different requests whose attempts are counted."""


class ModelServer:
    """A running server: its address and its log."""

    def __init__(
        self, port: int, scripts: Scripts | None = None, default: ModelScript | None = None
    ) -> None:
        self.port: Final = port
        self.url: Final = f"http://127.0.0.1:{port}"
        self.log: Final = RequestLog()
        self.failure: Exception | None = None
        """The first exception of a function that chooses replies."""
        self._scripts: Final = scripts
        self._default: Final = default
        self._attempts: Final[OrderedDict[str, int]] = OrderedDict()

    @trio.lowlevel.enable_ki_protection  # a KeyboardInterrupt must reach the block only
    async def serve(self, stream: trio.SocketStream) -> None:
        """Serve one connection to its end.

        Args:
            stream: The stream of the connection.
        """
        async with stream:
            try:
                await ServerConnection(stream, self.log, self._answer).run()
            except* (trio.BrokenResourceError, trio.ClosedResourceError):
                pass  # the client disconnected; the log shows it

    async def _answer(self, http: HttpRequest, exchange: Exchange, send: Send) -> bool:
        for dialect in DIALECTS:
            found = dialect.read(http)
            if isinstance(found, PlainAnswer):
                await send_plain_answer(found, exchange, send, head=http.method == "HEAD")
                return True
            if found is not None:
                asked = msgspec.structs.replace(found, attempt=self._attempt(found))
                exchange.asked = asked
                planned = self._plan(asked)
                exchange.reply = planned.number
                await Responder(dialect, asked, planned, exchange, send).respond()
                return True
        self.log.add_stranger(exchange)
        # A client that uses the server as a proxy wants to reach another host.
        beyond = http.method == "CONNECT" or "://" in http.target
        status = 403 if beyond else 404
        await send_plain_answer(PlainAnswer(status, {"error": "unknown target"}), exchange, send)
        return True

    def _plan(self, asked: ModelRequest) -> PlannedReply:
        try:
            return choose_reply(asked, self._scripts, self._default)
        except Exception as error:
            # Stored for `open_model_server`: a cancellation may replace it in the nurseries.
            self.failure = self.failure or error
            raise

    def _attempt(self, request: ModelRequest) -> int:
        """Count a request, and return the number of earlier equal ones."""
        asked = (request.face, request.session, request.model, request.items)
        key = hashlib.sha256(msgspec.json.encode(asked)).hexdigest()
        before = self._attempts.pop(key, 0)
        self._attempts[key] = before + 1
        if len(self._attempts) > _COUNTED:
            self._attempts.popitem(last=False)
        return before


@asynccontextmanager
async def open_model_server(
    scripts: Scripts | None = None, *, default: ModelScript | None = None, port: int = 0
) -> AsyncGenerator[ModelServer]:
    """Open a server on loopback.

    An exception of a function in `scripts` is raised at the end of the block.

    Args:
        scripts: The replies; by default each prompt carries its own.
        default: The script of each prompt that has none; by default such a prompt is echoed.
        port: The port; by default a free one.
    """
    listeners = await trio.open_tcp_listeners(port, host="127.0.0.1")
    port = listeners[0].socket.getsockname()[1]
    server = ModelServer(port, scripts, default)
    body: BaseException | None = None
    try:
        async with trio.open_nursery() as nursery:
            await nursery.start(partial(trio.serve_listeners, server.serve, listeners))
            try:
                yield server
            except BaseException as error:  # noqa: ASYNC103, BLE001  # it leaves below, bare
                body = error
            nursery.cancel_scope.cancel()
    except* KeyboardInterrupt as interrupts:
        # trio raises it in any task, and has cancelled the body for it.
        body = KeyboardInterrupt()
        body.__cause__ = interrupts
    except* Exception:
        if server.failure is None:
            raise
    if server.failure is not None and (body is None or isinstance(body, trio.Cancelled)):
        raise server.failure
    if body is not None:
        if server.failure is not None:
            body.add_note(
                f"before that, a function that chooses replies failed: {server.failure!r}"
            )
        raise body
