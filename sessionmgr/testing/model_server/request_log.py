"""The log of a model server: requests and their outcomes."""

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
"""Maximum number of exchanges in the log."""
KEPT_BYTES: Final = 16 << 20
"""Maximum number of bytes of requests whose contents stay in the log: each request repeats the
whole conversation.
"""

Ending: TypeAlias = Literal["open", "whole", "cut", "left", "shutdown"]


class Exchange(msgspec.Struct, kw_only=True):
    """A request to the server, and the state of its answer."""

    number: int
    http: HttpRequest
    asked: ModelRequest | None = None
    """The request to the model, if it was one and its contents are still in the log."""
    reply: int | None = None
    """The index of the reply in the script."""
    status: int | None = None
    """The status of the answer, once it has started."""
    known: bool = True
    """Whether the target is known; otherwise the answer is 404, or 403 to a proxy request."""
    ending: Ending = "open"
    """`cut` by the script; `left` by the client before the end; `shutdown` with the server."""


class RequestLog:
    """The last exchanges, in the order of their starts, and the total number."""

    def __init__(self) -> None:
        self._kept: deque[Exchange] = deque(maxlen=KEPT)
        self._whole: deque[Exchange] = deque()
        """The exchanges whose contents are still in the log."""
        self._bytes = 0
        self._changed: Final = RepeatedEvent()
        self._total: Final = AsyncValue(0)
        self.strangers: list[str] = []
        """Unknown targets, as `METHOD TARGET`; an isolated run has none."""

    def __iter__(self) -> Iterator[Exchange]:
        return iter(tuple(self._kept))

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def total(self) -> int:
        """The total number of requests."""
        return self._total.value

    def begin(self, http: HttpRequest) -> Exchange:
        """Add a request."""
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
        """Record the end of an exchange; by default the server's shutdown."""
        if exchange.ending == "open":
            exchange.ending = "shutdown"
        self._changed.set()

    async def wait_for_total(self, total: int) -> None:
        """Wait until there were `total` requests."""
        await self._total.wait(lambda number: number >= total)

    async def wait_for_change(self) -> None:
        """Wait until a request begins, or an answer ends."""
        await self._changed.wait()

    async def wait_until_idle(self) -> None:
        """Wait until no answer is being sent."""
        await trio.lowlevel.checkpoint()
        while any(each.ending == "open" for each in self._kept):
            await self._changed.wait()

    def add_stranger(self, exchange: Exchange) -> None:
        """Record a request for an unknown target."""
        exchange.known = False
        if len(self.strangers) < KEPT:
            self.strangers.append(f"{exchange.http.method} {exchange.http.target}")

    @property
    def asked(self) -> list[ModelRequest]:
        """The requests to the model that are still in the log."""
        return [each.asked for each in self._kept if each.asked is not None]
