"""The new text of each event of a run, for a reader who shows the text as it arrives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sessionmgr.model.event import AnyEvent, MessageReceived, MessageStreamed

SEPARATOR: Final = "\n\n"
"""The text between two messages."""


class TextPieces:
    """Extractor of the agent's text from the events of a run, which must come in order.

    It returns every character once, whether a provider streams its messages, sends them whole, or
    both. The messages of sub-agents are left out. An empty line separates two messages.
    """

    def __init__(self) -> None:
        self._message_id: str | None = None
        self._streamed: Final[list[str]] = []
        """The streamed pieces of the current message."""
        self._is_later = False
        """Whether the current message follows another one."""

    def piece(self, event: AnyEvent) -> str:
        """Return the new text of an event; most have none.

        Args:
            event: The next event.
        """
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
