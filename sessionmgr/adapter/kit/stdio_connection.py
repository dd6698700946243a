"""Connection to a child that speaks in lines: decodes them to frames and pushes these.

The child has one conversation at a time. Frames that come before the first is opened are pushed
into its driver then; those between two conversations go to `on_unhandled_frames`.

    class EchoConnection(StdioConnection[Outgoing, Frame]):
        def __init__(self) -> None:
            super().__init__(read)

        async def open(self, spec: Open, driver: Driver[Frame]) -> EchoConversation:
            await trio.lowlevel.checkpoint()
            self.attach(driver)
            self.write_message(spec)
            return EchoConversation(self, driver)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

import trio

from sessionmgr.adapter.kit.stdio_child import StdioChild
from sessionmgr.model import encode_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sessionmgr.adapter import Driver
    from sessionmgr.process import Escalation
    from sessionmgr.wire import Line

Outgoing = TypeVar("Outgoing")
Frame = TypeVar("Frame")

MAX_EARLY_BYTES: Final = 1024 * 1024
"""Bytes that the child may write before its first conversation is opened."""


def encode_line(message: Any) -> bytes:
    """Return a message as a line of JSON."""
    return encode_json(message) + b"\n"


class StdioConnection(StdioChild, Generic[Outgoing, Frame]):
    """Base class of a connection: a child and its current conversation, which a subclass opens."""

    def __init__(
        self,
        read: Callable[[Sequence[Line]], Sequence[Frame]],
        encode: Callable[[Outgoing], bytes] = encode_line,
        *,
        ladder: Escalation | None = None,
    ) -> None:
        super().__init__(self._push, room=self._wait_for_room, over=self._end, ladder=ladder)
        self._read: Final = read
        self._encode: Final = encode
        self._driver: Driver[Frame] | None = None
        self._early: Final[list[Frame]] = []
        self._early_size = 0
        self._is_opened: Final = trio.Event()

    def attach(self, driver: Driver[Frame]) -> None:
        """Push frames into a driver from now on; frames that came before the first, at once.

        Raises:
            RuntimeError: The child has a conversation; `JsonRpcConnection` allows several at once.
        """
        if self._driver is not None:
            raise RuntimeError("the connection has a conversation already; close it first")
        self._driver = driver
        self._is_opened.set()
        if self._early:
            driver.feed(tuple(self._early), self._early_size)
            self._early.clear()
        if self.has_ended:
            driver.end()

    def detach(self, driver: Driver[Frame]) -> None:
        """Stop pushing frames into a driver."""
        if self._driver is driver:
            self._driver = None

    def write_message(self, message: Outgoing) -> bool:
        """Queue a message; False if there is no room. See `StdioChild.write`."""
        return self.write(self._encode(message))

    def on_unhandled_frames(self, frames: Sequence[Frame]) -> None:
        """Handle frames that came between two conversations."""
        return

    def _push(self, lines: Sequence[Line]) -> None:
        frames = self._read(lines)
        if self._driver is not None:
            self._driver.feed(frames, read_size(lines))
        elif self._is_opened.is_set():
            self.on_unhandled_frames(frames)
        else:
            self._early.extend(frames)
            self._early_size += read_size(lines)

    async def _wait_for_room(self) -> None:
        if self._driver is not None:
            await self._driver.room()
        elif self._early_size > MAX_EARLY_BYTES:
            await self._is_opened.wait()
        else:
            await trio.lowlevel.checkpoint()

    def _end(self) -> None:
        if self._driver is not None:
            self._driver.end()


class StdioConversation(Generic[Outgoing, Frame]):
    """Base class of a conversation. A subclass implements `interrupt` and `answer`."""

    def __init__(self, connection: StdioConnection[Outgoing, Frame], driver: Driver[Frame]) -> None:
        self._connection: Final = connection
        self._driver: Final = driver

    async def send(self, message: Outgoing) -> None:
        """Queue a message at once, so that messages are sent in the order of the calls."""
        self._connection.write_message(message)
        await trio.lowlevel.checkpoint()

    def close(self, *, keep: bool = False) -> None:
        """Push no more frames. The child keeps its session as long as it runs."""
        self._connection.detach(self._driver)

    async def discard(self) -> None:
        """Do nothing: processes that the child's commands leave behind end with its tree."""
        await trio.lowlevel.checkpoint()


def read_size(lines: Sequence[Line]) -> int:
    """Return the number of bytes of the lines of a read, without those that were too long."""
    try:
        return sum(map(len, cast("Sequence[bytes]", lines)))
    except TypeError:
        return sum(len(line) for line in lines if isinstance(line, bytes))
