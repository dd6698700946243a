"""The messages of an ACP session as events, from the pieces in which an agent reports them.

Agents of version 1 seldom name a message, so it is complete when something else follows it. In
version 2 it has a name, and an update can replace its content.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import UNSET

from sessionmgr.model import (
    MessageReceived,
    MessageStreamed,
    RawReceived,
    ReasoningReceived,
    ReasoningStreamed,
)
from sessionmgr_adapters.acp import updates
from sessionmgr_adapters.acp.state import IncompleteMessage
from sessionmgr_adapters.acp.tool_calls import image_source
from sessionmgr_adapters.acp.usage import call_usage_events, rate_limit_events

if TYPE_CHECKING:
    from sessionmgr.model import Event, Json
    from sessionmgr_adapters.acp.state import AcpState
    from sessionmgr_adapters.acp.updates import ContentBlock


def chunk_events(update: updates.ContentChunk, state: AcpState) -> list[Event]:
    """Return the events for a further piece of a message."""
    if isinstance(update, updates.UserChunk):
        events = complete_message(state)  # an echo of ours
        state.insert(update.message_id)
        return events
    state.note_work()
    kind: Literal["agent", "thought"] = (
        "agent" if isinstance(update, updates.AgentChunk) else "thought"
    )
    events = _open_message(kind, update.message_id, state)
    events += _block_events(update.content, state)
    if update.meta is not None:
        events += call_usage_events(update.meta, state)
        events += rate_limit_events(update.meta, state)
    return events


def content_events(update: updates.WholeContent, state: AcpState) -> list[Event]:
    """Return the events for a message that replaces what was reported of it before."""
    if isinstance(update, updates.UserContent):
        events = complete_message(state)
        state.insert(update.message_id)
        return events
    if update.content is UNSET:
        return []
    state.note_work()
    kind: Literal["agent", "thought"] = (
        "agent" if isinstance(update, updates.AgentContent) else "thought"
    )
    text = "".join(_text(each) or "" for each in update.content or ())
    if state.turn.messages.get(update.message_id) == text:
        return []
    events = _open_message(kind, update.message_id, state)
    assert state.message is not None
    known = "".join(state.message.parts)
    if text.startswith(known):
        events += _add(text[len(known) :], state)
    state.message.parts = [text]
    for block in update.content or ():
        if _text(block) is None:
            events += _block_events(block, state)
    return events


def _open_message(
    kind: Literal["agent", "thought"], message_id: str | None, state: AcpState
) -> list[Event]:
    """Make sure that a message is open; return the events for the one before it."""
    message = state.message
    if message is not None and message.kind == kind and message_id in (None, message.id):
        return []
    events = complete_message(state)
    state.message = IncompleteMessage(kind, message_id)
    return events


def complete_message(state: AcpState) -> list[Event]:
    """Return the event for the open message, which is complete."""
    message, state.message = state.message, None
    text = "" if message is None else "".join(message.parts)
    if message is None or not text:
        return []
    if message.id is not None:
        state.turn.messages[message.id] = text
    if message.kind == "thought":
        return [ReasoningReceived(content=text)]
    state.turn.text = text
    return [MessageReceived(content=text, message_id=message.id)]


def _block_events(block: ContentBlock, state: AcpState) -> list[Event]:
    """Return the events for a piece of a message."""
    text = _text(block)
    if text is not None:
        return _add(text, state)
    value: Json = {"type": block.type, "data": block.data, "mimeType": block.mime_type}
    source = image_source(value)
    if source is None:
        return [RawReceived(frame=value)]
    return state.images.extract([source])[1]


def _add(text: str, state: AcpState) -> list[Event]:
    message = state.message
    if message is None or not text:
        return []
    message.parts.append(text)
    if message.kind == "thought":
        return [ReasoningStreamed(delta=text)]
    state.turn.has_text = state.turn.is_answered = True
    return [MessageStreamed(delta=text, message_id=message.id)]


def _text(block: ContentBlock) -> str | None:
    """Return the text of a piece of content; None if it has none."""
    match block.type:
        case "text":
            return block.text or ""
        case "resource_link":
            return block.uri or ""
        case "resource":
            resource = block.resource if isinstance(block.resource, dict) else {}
            text = resource.get("text", resource.get("uri"))
            return text if isinstance(text, str) else ""
        case _:
            return None
