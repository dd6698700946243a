"""Events of the conversation: messages, reasoning, plans, images."""

from __future__ import annotations

from typing import ClassVar, Literal

from sessionmgr.model.event.envelope import Event
from sessionmgr.model.value import Value


class MessageSent(Event, frozen=True, kw_only=True):
    """A message to the agent, and its delivery state."""

    type: ClassVar[Literal["message_sent"]]
    message_id: str
    """Id of the message."""
    content: str
    """The text."""
    follow_up: bool = False
    """Whether the message follows a prompt: `append`, not `start`."""
    state: Literal["queued", "sent", "dropped", "unknown"] = "sent"
    """Delivery state; `unknown` if the run ended before delivery was certain."""


class MessageStreamed(Event, frozen=True, kw_only=True):
    """The agent wrote more text: a preview of the message that follows."""

    type: ClassVar[Literal["message_streamed"]]
    delta: str
    """The new text."""
    message_id: str | None = None
    """Id of the message that the text belongs to."""


class MessageReceived(Event, frozen=True, kw_only=True):
    """A complete message; from the agent unless `role` says otherwise."""

    type: ClassVar[Literal["message_received"]]
    content: str
    """The whole text."""
    role: str = "assistant"
    """The author: `assistant` or `user`."""
    message_id: str | None = None
    """Id of the message."""


class ReasoningStreamed(Event, frozen=True, kw_only=True):
    """The agent reasoned further: a preview."""

    type: ClassVar[Literal["reasoning_streamed"]]
    delta: str
    """The new text."""


class ReasoningReceived(Event, frozen=True, kw_only=True):
    """The part of its reasoning that the agent reports."""

    type: ClassVar[Literal["reasoning_received"]]
    content: str
    """The whole text."""


class PlanEntry(Value, frozen=True, kw_only=True, gc=False):
    """One step of an agent's plan."""

    content: str
    """The step."""
    status: str = "pending"
    """State of the step, such as `pending`, `in_progress` or `completed`."""
    priority: str | None = None
    """Priority of the step, if the provider reports one."""


class PlanUpdated(Event, frozen=True, kw_only=True):
    """The agent's present plan."""

    type: ClassVar[Literal["plan_updated"]]
    entries: tuple[PlanEntry, ...]
    """All steps of the plan."""


class ImageReceived(Event, frozen=True, kw_only=True):
    """The agent made an image; the store keeps its bytes as a blob named by their sha256."""

    type: ClassVar[Literal["image_received"]]
    media_type: str
    """Media type, such as `image/png`."""
    blob: str
    """The sha256 of the image."""
    bytes: int
    """Size of the image."""
