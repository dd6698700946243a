"""Lines of `codex exec --json` to the frames that an app-server would send.

The items are the same, and spelt otherwise; what goes wrong is a sentence where an app-server names
a class. A frame or an item of a type that we do not know comes out as it came.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.model import Json
from sessionmgr.wire import UntypedFrame, decode_frames
from sessionmgr_adapters.codex import frames
from sessionmgr_adapters.codex.failures import without_places
from sessionmgr_adapters.codex.items import KnownItem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.wire import Line
    from sessionmgr_adapters.codex.frames import Frame

_DECODER: Final = msgspec.json.Decoder(dict[str, Json])
_TYPES: Final = {"plan": "agentMessage", "collab_tool_call": "collabAgentToolCall"}
"""Items whose type has another name there, beside the spelling."""


def read(lines: Sequence[Line]) -> list[Frame]:
    """Return the frame that each line of a read is."""
    return [
        _frame_of(line) if isinstance(line, dict) else line
        for line in decode_frames(lines, _DECODER)
    ]


def _frame_of(line: dict[str, Json]) -> Frame:
    try:
        return _known(line) or UntypedFrame(line, "it is of a type that nobody knows")
    except msgspec.ValidationError as refusal:
        return UntypedFrame(line, str(refusal))


def _known(line: dict[str, Json]) -> Frame | None:
    match line:
        case {"type": "thread.started", "thread_id": str(thread)}:
            return frames.ThreadStarted(thread=frames.ThreadRef(id=thread))
        case {"type": "turn.started"}:
            return frames.TurnStarted(turn=frames.Turn(id=""))
        case {"type": "turn.completed"}:
            usage = msgspec.convert(_respelt(line.get("usage")), frames.TokenCounts | None)
            return frames.TurnEnded(turn=frames.Turn(id="", status="completed"), usage=usage)
        case {"type": "turn.failed", "error": {"message": str(message)}}:
            turn = frames.Turn(id="", status="failed", error=turn_error(message))
            return frames.TurnEnded(turn=turn)
        case {"type": "error", "message": str(message)}:
            return failing(message)
        case {"type": "item.started" | "item.updated", "item": dict(item)}:
            return _under_way(item)
        case {"type": "item.completed", "item": dict(item)}:
            return _done(item)
        case _:
            return None


def _under_way(item: dict[str, Json]) -> Frame:
    match item:
        case {"type": "todo_list", "items": todo}:
            steps = msgspec.convert(todo, list[_Todo])
            return frames.PlanChanged(plan=[each.step for each in steps])
        case {"type": "error" | "agent_message" | "plan" | "reasoning"}:
            return frames.Quiet()  # it is told when it is whole
        case _:
            return frames.ItemStarted(item=_item(item))


def _done(item: dict[str, Json]) -> Frame:
    match item:
        case {"type": "todo_list"}:
            return frames.Quiet()  # it was told when it changed
        case {"type": "error", "message": str(message)}:
            return frames.Warned(message=cleaned(message))
        case {"type": "reasoning", "text": text}:
            return frames.ItemEnded(item=_item({**item, "summary": [text]}))
        case {"type": "mcp_tool_call", "error": dict(error)}:
            return frames.ItemEnded(item=_item({**item, "error": None, "result": error}))
        case _:
            return frames.ItemEnded(item=_item(item))


class _Todo(msgspec.Struct):
    text: str = ""
    completed: bool = False

    @property
    def step(self) -> frames.Step:
        return frames.Step(self.text, "completed" if self.completed else "pending")


def _item(given: dict[str, Json]) -> KnownItem:
    kind = str(given.get("type"))
    item = _respelt({**given, "type": _TYPES.get(kind, _camel(kind))})
    known: KnownItem = msgspec.convert(item, KnownItem)
    return known


def _respelt(value: Json) -> Json:
    """Return an object whose members are spelt as an app-server spells them."""
    if not isinstance(value, dict):
        return value
    return {_camel(name): each for name, each in value.items()}


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


# --- what went wrong, in Codex's own sentences ---------------------------------------------------

# They stand at the start of a message that comes as an error. Whatever is not known to the letter
# is of the class `other`: something went wrong, and nothing more is known.
_NO_STATUS: Final[dict[str, Json]] = {"httpStatusCode": None}
_CLASSES: Final[tuple[tuple[str, Json], ...]] = (
    ("Codex ran out of room in the model's context window", "contextWindowExceeded"),
    ("You've hit your usage limit", "usageLimitExceeded"),
    ("Quota exceeded. Check your plan", "usageLimitExceeded"),
    ("Selected model is at capacity", "serverOverloaded"),
    ("We're currently experiencing high demand", "internalServerError"),
    ("stream disconnected before completion", {"responseStreamDisconnected": _NO_STATUS}),
    ("Connection failed: ", {"httpConnectionFailed": _NO_STATUS}),
)
_STATUS: Final = re.compile(r"(?:unexpected status|exceeded retry limit, last status:) (\d{3})\b")
_AGAIN: Final = re.compile(
    r"Reconnecting\.\.\. (?:(\d+)/\d+|waiting for network)(?: \((.*)\))?$", re.DOTALL
)

# What says nothing to anybody: what it does with its input, where it asked, the number of an error.
_CHATTER: Final = re.compile(
    r"^(Reading (additional input|prompt) from stdin\.\.\.|WARNING: .*)$\n?", re.MULTILINE
)
_ASIDES: Final = re.compile(
    r"(, url: [^\s,]+|, (request id|cf-ray): [\w-]+| \(code -?\d+\)(, data: \{.*\})?)"
)
_LABELS: Final = re.compile(r"^(Error: |ERROR: )+", re.MULTILINE)
_REPEATED: Final = re.compile(r"\b((?:thread|turn)/\w+: )(?=(?:thread|turn)/\w+ failed)")


def cleaned(message: str) -> str:
    """Return a message without what is for machines only, and without where files are."""
    said = _words_of(message.strip())
    said = _ASIDES.sub("", _LABELS.sub("", _CHATTER.sub("", said)))
    return without_places(_REPEATED.sub("", said)).strip()


def turn_error(message: str) -> frames.TurnError:
    """Return what a turn failed with, as an app-server would tell it."""
    return frames.TurnError(message=cleaned(message), codex_error_info=_class_of(message))


def failing(message: str) -> frames.Failing:
    """Return what an error is: an attempt that follows, or what the turn fails with next."""
    found = _AGAIN.match(message)
    if found is None:
        return frames.Failing(error=turn_error(message))
    attempt, why = found.groups()
    error = frames.TurnError(message=cleaned(why or message), codex_error_info=_class_of(why or ""))
    return frames.Failing(error=error, will_retry=True, attempt=int(attempt or 1))


def _class_of(message: str) -> Json:
    """Return the class that the error has elsewhere."""
    said = message.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    found = _STATUS.match(said)
    if found is not None:
        return {"httpConnectionFailed": {"httpStatusCode": int(found[1])}}
    return next((known for words, known in _CLASSES if said.startswith(words)), "other")


def _words_of(message: str) -> str:
    """Return what a server's answer says, where that is all there is."""
    if not message.startswith("{"):
        return message
    try:
        answer: Json = msgspec.json.decode(message)
    except (msgspec.DecodeError, RecursionError):
        return message
    match answer:
        case {"error": {"message": str(words)}} if words:
            return words
        case _:
            return message
