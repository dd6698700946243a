"""The text cursor: it yields the text that an agent writes in a run, in pieces, as it arrives."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from typing import Self

    from sessionmgr.manager.cursor import Cursor
    from sessionmgr.model import AnyEvent, MessageReceived, MessageStreamed

SEPARATOR: Final = "\n\n"
"""The text between two messages."""


class TextCursor:
    """An async iterator over the pieces of an agent's text.

    It yields every character once, whether a provider streams its messages, sends them whole, or
    both. The messages of sub-agents are left out. An empty line separates two messages.
    """

    def __init__(self, events: Cursor) -> None:
        self._events: Final = events
        self._pieces: Final[deque[str]] = deque()
        self._message_id: str | None = None
        self._streamed: Final[list[str]] = []
        """The streamed pieces of the current message."""
        self._is_later = False
        """Whether the current message follows another one."""

    def __aiter__(self) -> Self:
        """Iterate over the remaining pieces."""
        return self

    async def __anext__(self) -> str:
        """Wait for the next piece and return it."""
        while not self._pieces:
            events = await self._events.batch()
            if not events:
                raise StopAsyncIteration
            self._pieces.extend(filter(None, map(self._piece, events)))
        return self._pieces.popleft()

    async def aclose(self) -> None:
        """Stop reading."""
        self._pieces.clear()
        await self._events.aclose()

    def _piece(self, event: AnyEvent) -> str:
        """Return the new text of an event; most have none."""
        if event.type == "message_streamed":
            return "" if event.parent_tool_call_id else self._more(event)
        if event.type == "message_received":
            is_own = event.role == "assistant" and not event.parent_tool_call_id
            return self._rest(event) if is_own else ""
        if event.type == "retry_scheduled":  # the message comes again from its beginning
            self._end_message()
        return ""

    def _more(self, event: MessageStreamed) -> str:
        if event.message_id != self._message_id:
            self._end_message()
            self._message_id = event.message_id
        if not event.delta:
            return ""
        separator = self._separator()
        self._streamed.append(event.delta)
        return separator + event.delta

    def _rest(self, event: MessageReceived) -> str:
        """Return the part of a whole message that was not streamed."""
        streamed = "".join(self._streamed)
        rest = event.content[len(streamed) :] if event.content.startswith(streamed) else ""
        if rest:
            rest = self._separator() + rest
            self._streamed.append(rest)
        self._end_message()
        return rest

    def _separator(self) -> str:
        return SEPARATOR if self._is_later and not self._streamed else ""

    def _end_message(self) -> None:
        self._is_later = self._is_later or bool(self._streamed)
        self._streamed.clear()
        self._message_id = None
