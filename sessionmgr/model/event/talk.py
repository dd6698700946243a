"""What was said: messages, reasoning, plans, images."""

from __future__ import annotations

from typing import ClassVar, Literal

from sessionmgr.model.event.envelope import Event
from sessionmgr.model.value import Value


class MessageSent(Event, frozen=True, kw_only=True):
    """A message of ours, and how far it has come."""

    type: ClassVar[Literal["message_sent"]]
    message_id: str
    content: str
    follow_up: bool = False
    state: Literal["queued", "sent", "dropped", "unknown"] = "sent"


class MessageStreamed(Event, frozen=True, kw_only=True):
    """The agent wrote some more text: a preview of the message that follows."""

    type: ClassVar[Literal["message_streamed"]]
    delta: str
    message_id: str | None = None


class MessageReceived(Event, frozen=True, kw_only=True):
    """A whole message; of the agent, if it does not say otherwise."""

    type: ClassVar[Literal["message_received"]]
    content: str
    role: str = "assistant"
    message_id: str | None = None


class ReasoningStreamed(Event, frozen=True, kw_only=True):
    """The agent thought some more: a preview."""

    type: ClassVar[Literal["reasoning_streamed"]]
    delta: str


class ReasoningReceived(Event, frozen=True, kw_only=True):
    """What the agent lets us know of its reasoning."""

    type: ClassVar[Literal["reasoning_received"]]
    content: str


class PlanEntry(Value, frozen=True, kw_only=True, gc=False):
    """One step of an agent's plan."""

    content: str
    status: str = "pending"
    priority: str | None = None


class PlanUpdated(Event, frozen=True, kw_only=True):
    """The agent's plan, as it now is."""

    type: ClassVar[Literal["plan_updated"]]
    entries: tuple[PlanEntry, ...]


class ImageReceived(Event, frozen=True, kw_only=True):
    """The agent made an image; its bytes are a blob in the store, named by their sha256."""

    type: ClassVar[Literal["image_received"]]
    media_type: str
    blob: str
    bytes: int
