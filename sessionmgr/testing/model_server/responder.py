"""The responder: plays one reply to one client, move by move, as a stream or as a whole."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

import msgspec
import trio

from sessionmgr.model import encode_json
from sessionmgr.testing.model_server.choose_reply import PlannedReply
from sessionmgr.testing.model_server.dialect import ApiDialect, PlainAnswer
from sessionmgr.testing.model_server.http import LAST_CHUNK, answer_head, chunk
from sessionmgr.testing.model_server.request import ModelRequest
from sessionmgr.testing.model_server.request_log import Exchange
from sessionmgr.testing.model_server.script import (
    AnyMove,
    ModelCall,
    ModelCut,
    ModelEmpty,
    ModelFault,
    ModelHang,
    ModelHeaders,
    ModelLimits,
    ModelMalformed,
    ModelRefuse,
    ModelSay,
    ModelStop,
    ModelThink,
    ModelUsageLimit,
    ModelUse,
    ModelWait,
    moves_at,
)

Send: TypeAlias = Callable[[bytes], Awaitable[None]]
_AFTER_ONE: Final = 2
"""The index of the first piece after a text's start and its first delta."""
_LOOK_EVERY: Final = 0.02


async def send_plain_answer(
    plain: PlainAnswer, exchange: Exchange, send: Send, *, head: bool = False
) -> None:
    """Send an answer without a reply of a model; with `head`, only its head."""
    exchange.status = plain.status
    data = plain.data
    headers = [("content-type", "application/json"), *plain.headers.items()]
    begun = answer_head(plain.status, headers, length=len(data))
    await send(begun if head else begun + data)
    exchange.ending = "whole"


async def _wait_for_file(file: trio.Path) -> None:
    while not await file.exists():  # noqa: ASYNC110  # a file has no event
        await trio.sleep(_LOOK_EVERY)


def _headers_of(moves: Sequence[AnyMove], dialect: ApiDialect) -> dict[str, str]:
    headers: dict[str, str] = {}
    for move in moves:
        match move:
            case ModelHeaders():
                headers.update(move.headers)
            case ModelLimits():
                headers.update(dialect.limits(move))
            case _:
                pass
    return headers


class Responder:
    """Plays one reply."""

    def __init__(
        self,
        dialect: ApiDialect,
        request: ModelRequest,
        planned: PlannedReply,
        exchange: Exchange,
        send: Send,
    ) -> None:
        moves = moves_at(planned.reply, planned.attempt)
        stop = next((move for move in moves if isinstance(move, ModelStop)), None)
        use = next((move for move in moves if isinstance(move, ModelUse)), None)
        self._dialect: Final = dialect
        self._request: Final = request
        self._exchange: Final = exchange
        self._send: Final = send
        self._moves: Final = moves
        self._writer: Final = dialect.reply_writer(request, planned.number, stop, use)
        self._headers: Final = _headers_of(moves, dialect)
        self._begun = False
        self._instead: str | None = None
        """Data that replaces the whole message."""

    async def respond(self) -> None:
        """Play the moves, and end the answer unless a move did."""
        for move in self._moves:
            if await self._run_move(move):
                return
        await self._end()

    async def _end(self) -> None:
        """End the answer regularly."""
        if self._request.stream:
            await self._finish(self._writer.close())
            return
        whole = self._writer.whole()
        data = encode_json(whole) if self._instead is None else self._instead.encode()
        head = answer_head(200, self._head("application/json"), length=len(data))
        self._exchange.status = 200
        await self._send(head + data)
        self._exchange.ending = "whole"

    async def _run_move(self, move: AnyMove) -> bool:
        """Play one move; return whether it was the last."""
        match move:
            case ModelSay() | ModelThink() | ModelCall():
                await self._write_move(move)
            case ModelWait(seconds=seconds):
                await trio.sleep(seconds)
            case ModelUse() | ModelStop() | ModelHeaders() | ModelLimits():
                pass  # already sent with the head
            case ModelMalformed(text=text):
                self._instead = self._dialect.malformed if text is None else text
                if self._request.stream:
                    await self._write(self._instead.encode())
            case ModelEmpty():
                await self._end()
                return True
            case _:
                await self._fail(move)
                return True
        return False

    async def _write_move(self, move: ModelSay | ModelThink | ModelCall) -> None:
        held = bytearray()
        file = move.until if isinstance(move, ModelSay) else None
        for number, paused in enumerate(self._writer.encode_move(move)):
            waits = file is not None and number == _AFTER_ONE
            if paused.pause or waits:
                await self._write(bytes(held))
                held.clear()
                await trio.sleep(paused.pause)
            if waits:
                await _wait_for_file(trio.Path(str(file)))
            held += paused.data
        await self._write(bytes(held))

    async def _fail(
        self, move: ModelRefuse | ModelUsageLimit | ModelFault | ModelCut | ModelHang
    ) -> None:
        match move:
            case ModelCut(orderly=orderly):
                if orderly and self._request.stream:
                    await self._finish(b"")
                self._exchange.ending = "cut"
            case ModelHang():
                await trio.sleep_forever()
            case ModelFault():
                await self._break_off(move)
            case ModelRefuse() | ModelUsageLimit():
                if self._begun:  # too late for a status
                    kind = (move.kind if isinstance(move, ModelRefuse) else None) or "api_error"
                    await self._break_off(ModelFault(kind=kind, message=move.message))
                    return
                plain = self._dialect.refuse(move)
                headers = {**self._headers, **plain.headers}
                plain = msgspec.structs.replace(plain, headers=headers)
                await send_plain_answer(plain, self._exchange, self._send)

    async def _break_off(self, fault: ModelFault) -> None:
        if self._request.stream:
            await self._finish(self._writer.fault(fault))
            return
        plain = self._dialect.refuse(
            ModelRefuse(status=500, kind=fault.kind, message=fault.message)
        )
        await send_plain_answer(plain, self._exchange, self._send)

    async def _write(self, data: bytes) -> None:
        if self._request.stream:
            framed = self._framed(data)
            if framed:
                await self._send(framed)

    async def _finish(self, data: bytes) -> None:
        """Send the last bytes in one write: some clients disconnect as soon as they see the end."""
        await self._send(self._framed(data) + LAST_CHUNK)
        self._exchange.ending = "whole"

    def _framed(self, data: bytes) -> bytes:
        if self._begun:
            return chunk(data)
        self._begun = True
        self._exchange.status = 200
        head = answer_head(200, self._head("text/event-stream"))
        return head + chunk(self._writer.open() + data)

    def _head(self, content_type: str) -> list[tuple[str, str]]:
        return [("content-type", content_type), *self._headers.items()]
