"""The agent's text in pieces, from the events of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessionmgr.model import MessageReceived, MessageStreamed, RetryScheduled

if TYPE_CHECKING:
    from sessionmgr.model import AnyEvent


class TextPieces:
    """Takes the events of a run in their order, and returns the new text in each.

    A whole message repeats what was streamed of it. The texts of sub-agents are left out, as in the
    text of a result.
    """

    def __init__(self) -> None:
        self._streamed: list[str] = []
        """The streamed pieces of the message that is not whole yet."""

    def piece(self, event: AnyEvent) -> str:
        """Return the agent's text in an event that no earlier event had; it may be empty."""
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
