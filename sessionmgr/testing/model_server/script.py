"""Scripts for the model server: a script is a list of replies, and a reply a list of moves.

In JSON a move is an object whose `do` names it, a reply is a list of moves, and a script a list of
replies; a list of moves is a script of one reply:

    [[{"do": "say", "text": "Wait."}, {"do": "call", "tool": "shell", "input": {"command": "ls"}}],
     [{"do": "say", "text": "There is nothing."}]]

A fault may have `times`: it happens at the first so many attempts at this reply; at later attempts
it is skipped and the moves after it are played. Without `times` it happens at every attempt.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias, cast

import msgspec

from sessionmgr.model import Json

OPENING: Final = "<script>"
CLOSING: Final = "</script>"
"""A prompt carries its script between these tags."""
SUMMARY: Final = "<summary>"
"""The start of the server's summary of a conversation, which carries the script as well."""


def _tag(class_name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", class_name.removeprefix("Model")).lower()


class ModelMove(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag=_tag,
    tag_field="do",
    forbid_unknown_fields=True,
    omit_defaults=True,
):
    """The base of all moves."""


class ModelSay(ModelMove, frozen=True, kw_only=True):
    """Send a text, in some deltas, with a `pause` in seconds before each."""

    text: str
    deltas: int = 1
    pause: float = 0.0
    whole: bool = True
    """False: the end of the text is not sent, for an error that follows."""
    until: str | None = None
    """A file: all but the first delta waits until it exists."""


class ModelThink(ModelMove, frozen=True, kw_only=True):
    """Send reasoning."""

    text: str
    deltas: int = 1
    pause: float = 0.0


class ModelCall(ModelMove, frozen=True, kw_only=True):
    """Call a tool, by its own name or by its purpose (see `tools`)."""

    tool: str
    input: Mapping[str, Json] = msgspec.field(default_factory=dict[str, Json])
    broken: str | None = None
    """The arguments as text, to send invalid JSON or arguments that the tool rejects."""


class ModelWait(ModelMove, frozen=True, kw_only=True):
    """Wait some seconds. As the first move: before the answer starts."""

    seconds: float


class ModelUse(ModelMove, frozen=True, kw_only=True):
    """The usage of this reply; by default it is estimated from the characters."""

    input: int = 0
    cached_input: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0


class ModelStop(ModelMove, frozen=True, kw_only=True):
    """The stop reason, if it is not the usual one."""

    reason: Literal["end_turn", "tool_use", "max_tokens", "refusal", "pause_turn"]


class ModelHeaders(ModelMove, frozen=True, kw_only=True):
    """Additional headers of the answer."""

    headers: Mapping[str, str]


class ModelLimits(ModelMove, frozen=True, kw_only=True):
    """The used part of the subscription, reported in the headers of the answer."""

    used: float
    """From 0 to 1."""
    resets_at: int
    """In seconds since 1970."""
    status: Literal["allowed", "allowed_warning"] = "allowed"


class ModelRefuse(ModelMove, frozen=True, kw_only=True):
    """Answer with an error status.

    Once the answer has started, it becomes a `fault` instead.
    """

    status: int
    message: str = "as the script says"
    kind: str | None = None
    """The type of the error, if it is not the usual one for the status."""
    retry_after: float | None = None
    headers: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    times: int | None = None


class ModelUsageLimit(ModelMove, frozen=True, kw_only=True):
    """Refuse because the subscription is exhausted until a time."""

    resets_at: int
    message: str = "You have reached your limit."
    times: int | None = None


class ModelFault(ModelMove, frozen=True, kw_only=True):
    """Send an error in the middle of the stream, and end the stream."""

    kind: str = "overloaded_error"
    message: str = "as the script says"
    times: int | None = None


class ModelCut(ModelMove, frozen=True, kw_only=True):
    """Close the connection now."""

    orderly: bool = False
    """True: the stream ends as HTTP requires, but without its last event."""
    times: int | None = None


class ModelEmpty(ModelMove, frozen=True, kw_only=True):
    """End the answer regularly; as the only move it is an answer without content."""

    times: int | None = None


class ModelHang(ModelMove, frozen=True, kw_only=True):
    """Send nothing more, and keep the connection open until the client disconnects."""

    times: int | None = None


class ModelMalformed(ModelMove, frozen=True, kw_only=True):
    """Send invalid data unchanged, in the middle of the stream."""

    text: str | None = None
    """By default, an event that the API's clients read, with data that is not JSON."""
    times: int | None = None


Failing: TypeAlias = (
    ModelRefuse | ModelUsageLimit | ModelFault | ModelCut | ModelEmpty | ModelHang | ModelMalformed
)
AnyMove: TypeAlias = (
    ModelSay
    | ModelThink
    | ModelCall
    | ModelWait
    | ModelUse
    | ModelStop
    | ModelHeaders
    | ModelLimits
    | Failing
)
ModelReply: TypeAlias = Sequence[ModelMove]
ModelScript: TypeAlias = Sequence[ModelReply]

_ESCAPED: Final = re.compile(r'\s*\[[\[\s]*\{\s*\\"')
_script: Final = msgspec.json.Decoder(tuple[tuple[AnyMove, ...], ...])
_reply: Final = msgspec.json.Decoder(tuple[AnyMove, ...])


def parse_script(text: str) -> ModelScript:
    """Read a script from JSON.

    Raises:
        msgspec.ValidationError: The JSON is not a script; the message names the place.
        msgspec.DecodeError: The text is not JSON.
    """
    if re.match(r"\s*\[\s*\{", text):
        return (_reply.decode(text),)
    return _script.decode(text)


def write_script(script: ModelScript) -> str:
    """Write a script as JSON."""
    return msgspec.json.encode(script).decode()


def prompt_with(script: ModelScript, text: str = "") -> str:
    """Return a prompt that carries a script, after `text`."""
    return f"{text}{' ' if text else ''}{OPENING}{write_script(script)}{CLOSING}"


def script_in(text: str) -> ModelScript | None:
    """Return the script that a prompt carries, the last one if there are several.

    A script may contain prompts that carry scripts, for sub-agents; so it is decoded as JSON, and
    does not end at the next closing tag.

    Raises:
        msgspec.ValidationError: The text between the tags is not a script.
    """
    found: ModelScript | None = None
    start = text.find(OPENING)
    while start >= 0:
        start += len(OPENING)
        if _ESCAPED.match(text, start):  # opencode escapes the quotes in its arguments
            text = text[:start] + text[start:].replace('\\"', '"')
        try:
            value, length = cast(
                "tuple[object, int]", json.JSONDecoder().raw_decode(text[start:].lstrip())
            )
        except ValueError as error:
            raise msgspec.ValidationError(
                f"the script in the prompt is not JSON: {error}"
            ) from None
        found = parse_script(json.dumps(value))
        start = text.find(OPENING, start + length)
    return found


def text_without_script(text: str) -> str:
    """Return the text of a prompt without its script."""
    start, end = text.find(OPENING), text.rfind(CLOSING)
    if start < 0:
        return text
    after = text[end + len(CLOSING) :] if end > start else ""
    return (text[:start].rstrip() + after).strip()


def moves_at(reply: ModelReply, attempt: int) -> list[AnyMove]:
    """Return the moves for an attempt, counted from 0."""
    return [
        cast("AnyMove", move)
        for move in reply
        if not isinstance(move, Failing) or move.times is None or attempt < move.times
    ]
