"""What the toy agent says, and what is said to it: one JSON object a line.

The frames are open, as every provider's should be: fields that we do not know are passed over, and
a type that we do not know comes out of the decoder as what it is, not as an error.
"""

from __future__ import annotations

from functools import partial
from typing import Final, Literal, TypeAlias

import msgspec

from sessionmgr.model import Json
from sessionmgr.wire import NoFrame, read_frames


def _tag(name: str) -> str:
    return "".join(f"_{each.lower()}" if each.isupper() else each for each in name).lstrip("_")


class _Message(msgspec.Struct, frozen=True, tag_field="type", tag=_tag):
    """A message, whose `type` is its name: `ToolBegan` is `tool_began`."""


class Hello(_Message, frozen=True):
    """The session is open."""

    session: str
    version: str = "1"
    model: str | None = None


class TextDelta(_Message, frozen=True):
    """Some more text of a message."""

    text: str
    message: str


class Text(_Message, frozen=True):
    """A whole message."""

    text: str
    message: str


class ToolBegan(_Message, frozen=True):
    """A tool is at work."""

    id: str
    name: str
    input: Json = None


class ToolEnded(_Message, frozen=True):
    """A tool is done."""

    id: str
    ok: bool = True
    output: Json = None


class Question(_Message, frozen=True):
    """The agent asks whether a tool may be used."""

    id: str
    name: str
    input: Json = None
    effect: Literal["read", "edit", "command", "network", "other"] = "other"


class Withdrawn(_Message, frozen=True):
    """The question needs no answer any more."""

    id: str


class Took(_Message, frozen=True):
    """Whether another message was taken into the turn."""

    id: str
    taken: bool


class Tokens(_Message, frozen=True):
    """What was used since it was last told."""

    input: int = 0
    output: int = 0


class TurnEnded(_Message, frozen=True):
    """The turn is over; with an error, it went wrong."""

    reason: str = "done"
    error: str | None = None


Frame: TypeAlias = (
    Hello | TextDelta | Text | ToolBegan | ToolEnded | Tokens
    | Question | Withdrawn | Took | TurnEnded
)  # fmt: skip


class Open(_Message, frozen=True):
    """Open a session, a new one or one that was."""

    session: str | None = None


class Say(_Message, frozen=True):
    """A prompt: the turn begins."""

    text: str


class More(_Message, frozen=True):
    """Another message for the turn that is on."""

    id: str
    text: str


class Answer(_Message, frozen=True):
    """The answer to a question, perhaps with another input than it wanted."""

    id: str
    allow: bool
    input: Json | msgspec.UnsetType = msgspec.UNSET
    reason: str | None = None


class Cancel(_Message, frozen=True):
    """End the turn."""


Outgoing: TypeAlias = Open | Say | More | Answer | Cancel

AnyFrame: TypeAlias = Frame | NoFrame
"""What a line may be: one of these frames, or none."""

read: Final = partial(read_frames, decoder=msgspec.json.Decoder[Frame](Frame))
"""Decodes the lines of a read to `AnyFrame`s."""
