"""Messages from and to the toy agent: one JSON object per line.

The frames are open, as they should be for every provider: unknown fields are ignored, and a message
of an unknown type is decoded to `UntypedFrame`, not to an error.
"""

from __future__ import annotations

from functools import partial
from typing import Final, Literal, TypeAlias

import msgspec

from sessionmgr.model import Json
from sessionmgr.wire import NoFrame, decode_frames


def _tag(name: str) -> str:
    return "".join(
        f"_{each.lower()}" if each.isupper() else each for each in name.removeprefix("Toy")
    ).lstrip("_")


class _ToyMessage(msgspec.Struct, frozen=True, tag_field="type", tag=_tag):
    """Base class of a message; its `type` is its name: `tool_began` for `ToyToolBegan`."""


class ToyHello(_ToyMessage, frozen=True):
    """The session is open."""

    session: str
    version: str = "1"
    model: str | None = None


class ToyTextDelta(_ToyMessage, frozen=True):
    """A further piece of the text of a message."""

    text: str
    message: str


class ToyText(_ToyMessage, frozen=True):
    """A complete message."""

    text: str
    message: str


class ToyToolBegan(_ToyMessage, frozen=True):
    """A tool has started."""

    id: str
    name: str
    input: Json = None


class ToyToolEnded(_ToyMessage, frozen=True):
    """A tool has finished."""

    id: str
    ok: bool = True
    output: Json = None


class ToyQuestion(_ToyMessage, frozen=True):
    """Question whether a tool may be used."""

    id: str
    name: str
    input: Json = None
    effect: Literal["read", "edit", "command", "network", "other"] = "other"


class ToyWithdrawn(_ToyMessage, frozen=True):
    """A question no longer needs an answer."""

    id: str


class ToyTook(_ToyMessage, frozen=True):
    """Answer to `ToyMore`: whether the message was accepted for the turn."""

    id: str
    taken: bool


class ToyTokens(_ToyMessage, frozen=True):
    """Tokens used since the last such message."""

    input: int = 0
    output: int = 0


class ToyTurnEnded(_ToyMessage, frozen=True):
    """End of the turn, with an error if it failed."""

    reason: str = "done"
    error: str | None = None


Frame: TypeAlias = (
    ToyHello | ToyTextDelta | ToyText | ToyToolBegan | ToyToolEnded | ToyTokens
    | ToyQuestion | ToyWithdrawn | ToyTook | ToyTurnEnded
)  # fmt: skip


class ToyOpen(_ToyMessage, frozen=True):
    """Request to open a session, a new one or one to resume."""

    session: str | None = None


class ToySay(_ToyMessage, frozen=True):
    """Prompt, which begins a turn."""

    text: str


class ToyMore(_ToyMessage, frozen=True):
    """Further message for the current turn."""

    id: str
    text: str


class ToyAnswer(_ToyMessage, frozen=True):
    """Answer to a question; its `input` replaces that of the tool."""

    id: str
    allow: bool
    input: Json | msgspec.UnsetType = msgspec.UNSET
    reason: str | None = None


class ToyCancel(_ToyMessage, frozen=True):
    """Request to end the turn."""


Outgoing: TypeAlias = ToyOpen | ToySay | ToyMore | ToyAnswer | ToyCancel

AnyFrame: TypeAlias = Frame | NoFrame
"""A decoded line: one of these frames, or `NoFrame`."""

read: Final = partial(decode_frames, decoder=msgspec.json.Decoder[Frame](Frame))
"""Decodes the lines of a read to `AnyFrame`s."""
