"""What was said: messages, reasoning, plans, images."""

from __future__ import annotations

from typing import Literal

from sessionmgr.model.event.envelope import Event
from sessionmgr.model.value import Value


class MessageSent(Event, frozen=True, kw_only=True):
    """A message of ours, and how far it has come."""

    message_id: str
    content: str
    follow_up: bool = False
    state: Literal["queued", "sent", "dropped", "unknown"] = "sent"


class MessageStreamed(Event, frozen=True, kw_only=True):
    """The agent wrote some more text: a preview of the message that follows."""

    delta: str
    message_id: str | None = None


class MessageReceived(Event, frozen=True, kw_only=True):
    """A whole message; of the agent, if it does not say otherwise."""

    content: str
    role: str = "assistant"
    message_id: str | None = None


class ReasoningStreamed(Event, frozen=True, kw_only=True):
    """The agent thought some more: a preview."""

    delta: str


class ReasoningReceived(Event, frozen=True, kw_only=True):
    """What the agent lets us know of its reasoning."""

    content: str


class PlanEntry(Value, frozen=True, kw_only=True, gc=False):
    """One step of an agent's plan."""

    content: str
    status: str = "pending"
    priority: str | None = None


class PlanUpdated(Event, frozen=True, kw_only=True):
    """The agent's plan, as it now is."""

    entries: tuple[PlanEntry, ...]


class ImageReceived(Event, frozen=True, kw_only=True):
    """The agent made an image; its bytes are a blob in the store, named by their sha256."""

    media_type: str
    blob: str
    bytes: int
