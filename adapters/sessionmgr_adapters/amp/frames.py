"""Messages of Amp on its stdout, and ours to it: one JSON object per line.

The frames are open: unknown fields are ignored, an unknown type is decoded to an `UntypedFrame`.
The fields that decide about the end of the turn have any type, because a frame that is lost for a
malformed field would leave the turn without an end.
"""

from __future__ import annotations

from functools import partial
from typing import Final, Literal, TypeAlias

import msgspec

from sessionmgr.model import Json, encode_json
from sessionmgr.wire import NoFrame, decode_frames


class _AmpTagged(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """Base class of a frame or a block; its field `type` names its class."""


# --- blocks of a message -------------------------------------------------------------------------


class AmpText(_AmpTagged, frozen=True, tag="text"):
    """Text of a message."""

    text: str


class AmpThinking(_AmpTagged, frozen=True, tag="thinking"):
    """Reasoning that the model reveals."""

    thinking: str


class AmpToolUse(_AmpTagged, frozen=True, tag="tool_use"):
    """Call of a tool by the model."""

    id: str
    name: str
    input: Json = None


class AmpToolResult(_AmpTagged, frozen=True, tag="tool_result"):
    """Result of a tool call."""

    tool_use_id: str
    content: Json = None
    is_error: Json = False


AmpBlock: TypeAlias = AmpText | AmpThinking | AmpToolUse | AmpToolResult


def decode_block(value: Json) -> AmpBlock | None:
    """Return a block of a message; None if its type is unknown or a field is malformed."""
    try:
        return msgspec.convert(value, AmpBlock)  # type: ignore[no-any-return]
    except msgspec.ValidationError:
        return None


# --- frames of Amp -------------------------------------------------------------------------------


class AmpMessage(msgspec.Struct, frozen=True, kw_only=True):
    """Message of the thread; `content` is a list of blocks."""

    content: Json = None
    model: Json = None
    stop_reason: Json = None
    usage: Json = None


class _AmpFrame(_AmpTagged, frozen=True):
    session_id: Json = None
    """Id of the thread."""


class AmpInit(_AmpFrame, frozen=True, kw_only=True, tag="system"):
    """Start of the stream."""

    subtype: Literal["init"]
    cwd: Json = None
    tools: Json = None
    """Names of the tools that the model may call."""


class AmpAssistant(_AmpFrame, frozen=True, tag="assistant"):
    """Whole message of the model."""

    message: AmpMessage = AmpMessage()
    parent_tool_use_id: Json = None

    @property
    def ends_turn(self) -> bool:
        """Whether the agent has nothing more to do."""
        is_own = self.parent_tool_use_id is None
        return is_own and self.message.stop_reason not in (None, "tool_use")


class AmpUser(_AmpFrame, frozen=True, tag="user"):
    """Message to the model: results of tools, or a text, which is mostly ours repeated."""

    message: AmpMessage = AmpMessage()
    parent_tool_use_id: Json = None


class AmpResult(_AmpFrame, frozen=True, tag="result"):
    """End of the stream."""

    subtype: Json = None
    is_error: Json = False
    result: Json = None
    error: Json = None

    @property
    def is_failure(self) -> bool:
        """Whether the turn has failed."""
        return self.is_error is not False or self.subtype != "success"


AmpFrame: TypeAlias = AmpInit | AmpAssistant | AmpUser | AmpResult
AnyAmpFrame: TypeAlias = AmpFrame | NoFrame
"""A decoded line."""

decode_lines: Final = partial(decode_frames, decoder=msgspec.json.Decoder[AmpFrame](AmpFrame))
"""Decodes the lines of a read."""


# --- our messages --------------------------------------------------------------------------------


class AmpPrompt(msgspec.Struct, frozen=True, kw_only=True):
    """Prompt, or a further message to the running turn."""

    content: list[Json]
    request_id: str
    """Our id: Amp ignores a second message of the thread with the same one."""
    steer: bool = False
    """Whether the agent reads it at its next step, and not after its turn."""


class EndOfInput(msgspec.Struct, frozen=True):
    """No more messages follow: Amp ends once it has answered those that it has."""


AmpOutgoing: TypeAlias = AmpPrompt | EndOfInput


def encode_outgoing(outgoing: AmpOutgoing) -> bytes:
    """Return a message as a line; the end of the input has none."""
    match outgoing:
        case AmpPrompt(content=content, request_id=request_id, steer=steer):
            message: Json = {"role": "user", "content": content}
            line: dict[str, Json] = {"type": "user", "request_id": request_id, "message": message}
            return encode_json({**line, "steer": True} if steer else line) + b"\n"
        case EndOfInput():
            return b""
