"""What a run asks of an app-server: each call with a deadline, and again where it is only busy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio
from msgspec.structs import replace

from sessionmgr.adapter.kit.future import Future
from sessionmgr.adapter.kit.json_rpc_peer import BUSY, DEADLINE, PAUSE, TRIES
from sessionmgr_adapters.codex.failures import request_failure
from sessionmgr_adapters.codex.frames import Answer, Refusal
from sessionmgr_adapters.codex.outgoing import Call
from sessionmgr_adapters.codex.start_retry import is_half_made

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sessionmgr.model import Failure, FailureKind, Json
    from sessionmgr_adapters.codex.outgoing import Told

_AGAIN: Final = ("is closing", "already has an active writer")


class Caller:
    """Calls on behalf of one run."""

    def __init__(self, send: Callable[[Told], Awaitable[None]]) -> None:
        self.is_deaf = False
        """Whether a call was not answered in time."""
        self._send: Final = send
        self._open: Final[dict[int, Future[Answer]]] = {}
        self._numbers = 0

    async def call(self, method: str, params: dict[str, Json]) -> Answer:
        """Call something, and wait for the answer; again if Codex is busy for the moment."""
        answer = await self._call(method, params)
        for number in range(TRIES):
            if not _is_for_the_moment(answer):
                break
            await trio.sleep(PAUSE * 2**number)
            answer = await self._call(method, params)
        return answer

    async def _call(self, method: str, params: dict[str, Json]) -> Answer:
        self._numbers += 1
        number = self._numbers
        asked = self._open[number] = Future[Answer]()
        with trio.move_on_after(DEADLINE):
            await self._send(Call(number, method, params))
            return await asked.wait()
        self.is_deaf = True
        message = f"there was no answer within {DEADLINE:.0f} seconds"
        return Answer(number, method, refusal=Refusal(0, message))

    def settle(self, answer: Answer) -> None:
        """Take in an answer."""
        asked = self._open.pop(answer.call, None)
        if asked is not None:
            asked.set(answer)


def _is_for_the_moment(answer: Answer) -> bool:
    refusal = answer.refusal
    if refusal is None:
        return False
    if refusal.code == BUSY or is_half_made(refusal.message):
        return True
    return any(each in refusal.message for each in _AGAIN)


def refused(answer: Answer, kind: FailureKind | None = None) -> Failure:
    """Return the failure that it is that something was not done."""
    assert answer.refusal is not None
    failure = request_failure(answer.method, answer.refusal.code, answer.refusal.message)
    return failure if kind is None else replace(failure, kind=kind)
