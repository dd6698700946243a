"""What a model server was asked, and what became of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final, Literal, TypeAlias

import msgspec
import trio

from sessionmgr.testing.model_server.http import HttpRequest
from sessionmgr.testing.model_server.request import ModelRequest
from sessionmgr.trio_util_types import AsyncValue, RepeatedEvent

KEPT: Final = 10_000
"""How many of the last exchanges stay in the log."""
KEPT_BYTES: Final = 16 << 20
"""And of how many bytes of requests it is known what was asked: a long conversation is long in
each of them."""

Ending: TypeAlias = Literal["open", "whole", "cut", "left", "shutdown"]


class Exchange(msgspec.Struct, kw_only=True):
    """A request to the server, and how it was answered so far."""

    number: int
    http: HttpRequest
    asked: ModelRequest | None = None
    """What the model was asked, if it was the model that was asked, and not too long ago."""
    reply: int | None = None
    """The how manieth reply of the script was the answer."""
    status: int | None = None
    """The status of the answer, once it has begun."""
    known: bool = True
    """Whether anybody here knows what was asked for; else the answer is 404, or 403 to a proxy."""
    ending: Ending = "open"
    """`cut` by the script; `left` by the client before it had all; `shutdown` with the server."""


class RequestLog:
    """The last exchanges, in the order in which they began, and how many there were in all."""

    def __init__(self) -> None:
        self._kept: deque[Exchange] = deque(maxlen=KEPT)
        self._whole: deque[Exchange] = deque()
        """Those that still have all that was sent."""
        self._bytes = 0
        self._changed: Final = RepeatedEvent()
        self._total: Final = AsyncValue(0)
        self.strangers: list[str] = []
        """Targets that nobody here knows, as `METHOD TARGET`: a hermetic run has none."""

    def __iter__(self) -> Iterator[Exchange]:
        return iter(tuple(self._kept))

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def total(self) -> int:
        """How many requests there were."""
        return self._total.value

    def begin(self, http: HttpRequest) -> Exchange:
        """Note a request."""
        exchange = Exchange(number=self.total, http=http)
        self._total.value += 1
        self._kept.append(exchange)
        self._whole.append(exchange)
        self._bytes += len(http.body)
        while self._bytes > KEPT_BYTES and len(self._whole) > 1:
            self._forget(self._whole.popleft())
        self._changed.set()
        return exchange

    def _forget(self, exchange: Exchange) -> None:
        self._bytes -= len(exchange.http.body)
        exchange.http = msgspec.structs.replace(exchange.http, body=b"")
        exchange.asked = None

    def end(self, exchange: Exchange) -> None:
        """Note that nothing more will be answered; by default because the server ends."""
        if exchange.ending == "open":
            exchange.ending = "shutdown"
        self._changed.set()

    async def wait_for_total(self, total: int) -> None:
        """Wait until there were so many requests."""
        await self._total.wait(lambda number: number >= total)

    async def wait_until_idle(self) -> None:
        """Wait until nothing is being answered."""
        await trio.lowlevel.checkpoint()
        while any(each.ending == "open" for each in self._kept):
            await self._changed.wait()

    def add_stranger(self, exchange: Exchange) -> None:
        """Note that nobody knows what was asked for."""
        exchange.known = False
        if len(self.strangers) < KEPT:
            self.strangers.append(f"{exchange.http.method} {exchange.http.target}")

    @property
    def asked(self) -> list[ModelRequest]:
        """What the model was asked, as far back as it is known."""
        return [each.asked for each in self._kept if each.asked is not None]
