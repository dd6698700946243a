"""A request to a model, in a form common to all APIs: the conversation and the offered tools."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

import msgspec

from sessionmgr.model import Json
from sessionmgr.testing.model_server.images import RequestImage, find_images

Purpose: TypeAlias = Literal["turn", "compaction", "probe", "auxiliary"]
"""`auxiliary`: a request beside the turns, such as for a title or for the choice of a model."""


class UserPrompt(msgspec.Struct, frozen=True):
    """A message of the user."""

    text: str


class ModelMessage(msgspec.Struct, frozen=True):
    """An earlier message of the model."""

    text: str


class ModelToolCall(msgspec.Struct, frozen=True):
    """An earlier tool call of the model."""

    id: str
    tool: str


class ModelToolResult(msgspec.Struct, frozen=True):
    """The result of a tool call."""

    id: str
    text: str
    failed: bool = False


class UserInterrupt(msgspec.Struct, frozen=True):
    """The user interrupted the turn."""


class TruncatedReply(msgspec.Struct, frozen=True):
    """The model's last message was cut off, and the request asks for it again."""


RequestItem: TypeAlias = (
    UserPrompt | ModelMessage | ModelToolCall | ModelToolResult | UserInterrupt | TruncatedReply
)


class ToolOffer(msgspec.Struct, frozen=True):
    """A tool that the model may call. Without a schema it takes a text."""

    name: str
    schema: Mapping[str, Json] | None = None
    namespace: str | None = None


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request for one reply."""

    face: str
    """The name of the API."""
    model: str
    items: tuple[RequestItem, ...]
    """The conversation, without the messages that the agent itself adds for the model."""
    tools: tuple[ToolOffer, ...] = ()
    stream: bool = True
    purpose: Purpose = "turn"
    schema: Mapping[str, Json] | None = None
    """The schema for the text of the reply."""
    session: str = ""
    """The agent's name of its session, if it sends one."""
    body: Mapping[str, Json] = msgspec.field(default_factory=dict[str, Json])
    attempt: int = 0
    """The number of earlier requests with the same content."""

    @property
    def prompt(self) -> str:
        """The user's last message."""
        return next(
            (each.text for each in reversed(self.items) if isinstance(each, UserPrompt)), ""
        )

    @property
    def images(self) -> tuple[RequestImage, ...]:
        """The images in the conversation."""
        said = (self.body.get(name) for name in ("messages", "input", "contents"))
        return tuple(image for each in said for image in find_images(each))

    @property
    def results(self) -> tuple[ModelToolResult, ...]:
        """The results of the tool calls in the last reply."""
        last = len(self.items)
        while last and not isinstance(self.items[last - 1], ModelMessage | ModelToolCall):
            last -= 1
        return tuple(each for each in self.items[last:] if isinstance(each, ModelToolResult))

    @property
    def key(self) -> str:
        """Eight letters, equal for equal requests of a session."""
        asked = msgspec.json.encode((self.face, self.session, self.model, self.purpose, self.items))
        return hashlib.sha256(asked).hexdigest()[:8]


_CALL: Final = re.compile(r"_([0-9a-f]{8})_(\d+)_(\d+)$")


def call_id(prefix: str, request: ModelRequest, reply: int, number: int) -> str:
    """Return the id of a call, which contains the index of its reply in the script."""
    return f"{prefix}_{request.key}_{reply}_{number}"


def reply_of(id: str) -> int | None:
    """Return the index of the reply that made a call; None if the id is not one of ours."""
    found = _CALL.search(id)
    return None if found is None else int(found.group(2))
