"""The agent's text in pieces, extracted from the events of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessionmgr.model import MessageReceived, MessageStreamed, RetryScheduled

if TYPE_CHECKING:
    from sessionmgr.model import AnyEvent


class TextPieces:
    """Extracts the new text from each event of a run; the events must come in order.

    A complete message repeats its streamed pieces, which are left out here. Texts of sub-agents are
    left out, too, as in a result's text.
    """

    def __init__(self) -> None:
        self._streamed: list[str] = []
        """The streamed pieces of the message that is not complete yet."""

    def piece(self, event: AnyEvent) -> str:
        """Return the text that an event adds; it may be empty."""
        match event:
            case MessageStreamed() if not event.parent_tool_call_id:
                self._streamed.append(event.delta)
                return event.delta
            case MessageReceived(role="assistant") if not event.parent_tool_call_id:
                streamed = "".join(self._streamed)
                self._streamed.clear()
                has_more = event.content.startswith(streamed)
                return event.content[len(streamed) :] if has_more else ""
            case RetryScheduled():
                self._streamed.clear()
            case _:
                pass
        return ""
