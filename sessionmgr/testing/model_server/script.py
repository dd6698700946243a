"""What a model does, as plain data: a script is its replies, and a reply is a few moves.

In JSON a move is an object whose `do` names it, a reply is a list of moves, and a script a list of
replies; a list of moves is a script of one reply:

    [[{"do": "say", "text": "Wait."}, {"do": "call", "tool": "shell", "input": {"command": "ls"}}],
     [{"do": "say", "text": "There is nothing."}]]

What fails has `times`: on the first so many attempts at this reply it happens, on later ones it is
passed over and what follows it is played; without `times` it happens on all.
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
"""Between these a prompt carries its script."""


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
    """What all moves are."""


class ModelSay(ModelMove, frozen=True, kw_only=True):
    """Say a text, in so many deltas, with a `pause` in seconds before each."""

    text: str
    deltas: int = 1
    pause: float = 0.0
    whole: bool = True
    """False: it is never told that this was all; an error is to follow, say."""
    until: str | None = None
    """A file: all but the first delta is said once it is there, and not by the clock."""


class ModelThink(ModelMove, frozen=True, kw_only=True):
    """Think aloud."""

    text: str
    deltas: int = 1
    pause: float = 0.0


class ModelCall(ModelMove, frozen=True, kw_only=True):
    """Call a tool: by its own name, or by what it is for (see `tools`)."""

    tool: str
    input: Mapping[str, Json] = msgspec.field(default_factory=dict[str, Json])
    broken: str | None = None
    """The arguments word for word, where they shall be no JSON, or not that of the tool."""


class ModelWait(ModelMove, frozen=True, kw_only=True):
    """Do nothing for some seconds. As the first move: before the answer begins."""

    seconds: float


class ModelUse(ModelMove, frozen=True, kw_only=True):
    """What this reply has used; without it, as many tokens as the characters suggest."""

    input: int = 0
    cached_input: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0


class ModelStop(ModelMove, frozen=True, kw_only=True):
    """Why the reply ends, if not since all is said or tools are called."""

    reason: Literal["end_turn", "tool_use", "max_tokens", "refusal", "pause_turn"]


class ModelHeaders(ModelMove, frozen=True, kw_only=True):
    """Headers of the answer, word for word."""

    headers: Mapping[str, str]


class ModelLimits(ModelMove, frozen=True, kw_only=True):
    """How much of the subscription is used, as the headers of the answer tell it."""

    used: float
    """From 0 to 1."""
    resets_at: int
    """In seconds since 1970."""
    status: Literal["allowed", "allowed_warning"] = "allowed"


class ModelRefuse(ModelMove, frozen=True, kw_only=True):
    """Answer with a status that is an error.

    Once something was said it is too late for that, and it becomes a `fault`.
    """

    status: int
    message: str = "as the script says"
    kind: str | None = None
    """What the error calls itself, if not as errors with this status do."""
    retry_after: float | None = None
    headers: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    times: int | None = None


class ModelUsageLimit(ModelMove, frozen=True, kw_only=True):
    """Refuse because the subscription is used up until then."""

    resets_at: int
    message: str = "You have reached your limit."
    times: int | None = None


class ModelFault(ModelMove, frozen=True, kw_only=True):
    """Tell of an error in mid-stream, and end the stream."""

    kind: str = "overloaded_error"
    message: str = "as the script says"
    times: int | None = None


class ModelCut(ModelMove, frozen=True, kw_only=True):
    """Close the connection now."""

    times: int | None = None


class ModelHang(ModelMove, frozen=True, kw_only=True):
    """Say nothing more, and keep the connection open, until the client goes."""

    times: int | None = None


class ModelMalformed(ModelMove, frozen=True, kw_only=True):
    """Send what no client can read, word for word, in the midst of the stream."""

    text: str | None = None
    """Without it, an event of which the API's clients make use, with data that is no JSON."""
    times: int | None = None


Failing: TypeAlias = (
    ModelRefuse | ModelUsageLimit | ModelFault | ModelCut | ModelHang | ModelMalformed
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

_script: Final = msgspec.json.Decoder(tuple[tuple[AnyMove, ...], ...])
_reply: Final = msgspec.json.Decoder(tuple[AnyMove, ...])


def parse_script(text: str) -> ModelScript:
    """Read a script from JSON.

    Raises:
        msgspec.ValidationError: It is no script; the text says where.
        msgspec.DecodeError: It is no JSON.
    """
    if re.match(r"\s*\[\s*\{", text):
        return (_reply.decode(text),)
    return _script.decode(text)


def write_script(script: ModelScript) -> str:
    """Write a script as JSON."""
    return msgspec.json.encode(script).decode()


def prompt_with(script: ModelScript, text: str = "") -> str:
    """Return a prompt that carries a script: `text`, if any, comes before it."""
    return f"{text}{' ' if text else ''}{OPENING}{write_script(script)}{CLOSING}"


def script_in(text: str) -> ModelScript | None:
    """Return the script that a prompt carries, the last one if there are several.

    A script may hold prompts that carry scripts, as those of sub-agents do; so it is read as the
    JSON that it is, and not up to the next closing tag.

    Raises:
        msgspec.ValidationError: It carries something else.
    """
    found: ModelScript | None = None
    start = text.find(OPENING)
    while start >= 0:
        start += len(OPENING)
        try:
            value, length = cast(
                "tuple[object, int]", json.JSONDecoder().raw_decode(text[start:].lstrip())
            )
        except ValueError as error:
            raise msgspec.ValidationError(f"the script in the prompt is no JSON: {error}") from None
        found = parse_script(json.dumps(value))
        start = text.find(OPENING, start + length)
    return found


def text_without_script(text: str) -> str:
    """Return what else a prompt says."""
    start, end = text.find(OPENING), text.rfind(CLOSING)
    if start < 0:
        return text
    after = text[end + len(CLOSING) :] if end > start else ""
    return (text[:start].rstrip() + after).strip()


def moves_at(reply: ModelReply, attempt: int) -> list[AnyMove]:
    """Return what is played on the attempt of this number, counted from 0."""
    return [
        cast("AnyMove", move)
        for move in reply
        if not isinstance(move, Failing) or move.times is None or attempt < move.times
    ]
