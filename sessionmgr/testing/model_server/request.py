"""What a model is asked, in the same words whatever the API: what was said, with which tools."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

import msgspec

from sessionmgr.model import Json

Purpose: TypeAlias = Literal["turn", "compaction", "probe"]


class UserPrompt(msgspec.Struct, frozen=True):
    """What the user said."""

    text: str


class ModelMessage(msgspec.Struct, frozen=True):
    """What the model said before."""

    text: str


class ModelToolCall(msgspec.Struct, frozen=True):
    """A tool that the model called before."""

    id: str
    tool: str


class ModelToolResult(msgspec.Struct, frozen=True):
    """What a tool gave back."""

    id: str
    text: str
    failed: bool = False


class UserInterrupt(msgspec.Struct, frozen=True):
    """The user stopped what was going on."""


class TruncatedReply(msgspec.Struct, frozen=True):
    """What the model said last was cut off, and it is asked to say it again."""


RequestItem: TypeAlias = (
    UserPrompt | ModelMessage | ModelToolCall | ModelToolResult | UserInterrupt | TruncatedReply
)


class ToolOffer(msgspec.Struct, frozen=True):
    """A tool that may be called. Without a schema it takes a text."""

    name: str
    schema: Mapping[str, Json] | None = None
    namespace: str | None = None


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request for one reply."""

    face: str
    """Which API it came by."""
    model: str
    items: tuple[RequestItem, ...]
    """The conversation, without what the agent itself puts in for the model."""
    tools: tuple[ToolOffer, ...] = ()
    stream: bool = True
    purpose: Purpose = "turn"
    schema: Mapping[str, Json] | None = None
    """What the text of the reply has to be valid against."""
    session: str = ""
    """What the agent calls its session, if it tells."""
    body: Mapping[str, Json] = msgspec.field(default_factory=dict[str, Json])
    attempt: int = 0
    """How often the same was asked before."""

    @property
    def prompt(self) -> str:
        """What the user said last."""
        return next(
            (each.text for each in reversed(self.items) if isinstance(each, UserPrompt)), ""
        )

    @property
    def results(self) -> tuple[ModelToolResult, ...]:
        """What the tools gave back that the last reply called."""
        last = len(self.items)
        while last and not isinstance(self.items[last - 1], ModelMessage | ModelToolCall):
            last -= 1
        return tuple(each for each in self.items[last:] if isinstance(each, ModelToolResult))

    @property
    def key(self) -> str:
        """Eight letters that are the same whenever the same is asked in the same session."""
        asked = msgspec.json.encode((self.face, self.session, self.model, self.purpose, self.items))
        return hashlib.sha256(asked).hexdigest()[:8]


_CALL: Final = re.compile(r"_([0-9a-f]{8})_(\d+)_(\d+)$")


def call_id(prefix: str, request: ModelRequest, reply: int, number: int) -> str:
    """Return the id of a call, which tells by which reply of its script it was made."""
    return f"{prefix}_{request.key}_{reply}_{number}"


def reply_of(id: str) -> int | None:
    """Return which reply made a call; None if it was not one of ours."""
    found = _CALL.search(id)
    return None if found is None else int(found.group(2))
