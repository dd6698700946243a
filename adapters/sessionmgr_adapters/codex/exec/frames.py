"""The decoder from lines of `codex exec --json` to the frames of an app-server.

The items are the same with other spellings; an error is a sentence where an app-server names a
class. A frame or an item of unknown type is returned unchanged.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.model import Json
from sessionmgr.wire import UntypedFrame, decode_frames
from sessionmgr_adapters.codex import frames
from sessionmgr_adapters.codex.failures import strip_directories
from sessionmgr_adapters.codex.items import KnownItem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.wire import Line
    from sessionmgr_adapters.codex.frames import CodexFrame

_DECODER: Final = msgspec.json.Decoder(dict[str, Json])
_TYPES: Final = {"plan": "agentMessage", "collab_tool_call": "collabAgentToolCall"}
"""Items whose type has another name, not only another spelling."""


def decode_lines(lines: Sequence[Line]) -> list[CodexFrame]:
    """Return the frame in each line of a read."""
    return [
        _frame_of(line) if isinstance(line, dict) else line
        for line in decode_frames(lines, _DECODER)
    ]


def _frame_of(line: dict[str, Json]) -> CodexFrame:
    try:
        return _known_item(line) or UntypedFrame(line, "unknown type of frame")
    except msgspec.ValidationError as refusal:
        return UntypedFrame(line, str(refusal))


def _known_item(line: dict[str, Json]) -> CodexFrame | None:
    match line:
        case {"type": "thread.started", "thread_id": str(thread)}:
            return frames.ThreadStartedNotice(thread=frames.ThreadRef(id=thread))
        case {"type": "turn.started"}:
            return frames.TurnStartedNotice(turn=frames.CodexTurn(id=""))
        case {"type": "turn.completed"}:
            usage = msgspec.convert(_camel_cased(line.get("usage")), frames.CodexTokenCounts | None)
            return frames.TurnEndedNotice(
                turn=frames.CodexTurn(id="", status="completed"), usage=usage
            )
        case {"type": "turn.failed", "error": {"message": str(message)}}:
            turn = frames.CodexTurn(id="", status="failed", error=turn_error(message))
            return frames.TurnEndedNotice(turn=turn)
        case {"type": "error", "message": str(message)}:
            return parse_error(message)
        case {"type": "item.started" | "item.updated", "item": dict(item)}:
            return _item_started(item)
        case {"type": "item.completed", "item": dict(item)}:
            return _item_ended(item)
        case _:
            return None


def _item_started(item: dict[str, Json]) -> CodexFrame:
    match item:
        case {"type": "todo_list", "items": todo}:
            steps = msgspec.convert(todo, list[_TodoEntry])
            return frames.PlanNotice(plan=[each.step for each in steps])
        case {"type": "error" | "agent_message" | "plan" | "reasoning"}:
            return frames.SilentNotice()  # it is reported when it is complete
        case _:
            return frames.ItemStartedNotice(item=_item(item))


def _item_ended(item: dict[str, Json]) -> CodexFrame:
    match item:
        case {"type": "todo_list"}:
            return frames.SilentNotice()  # it was reported when it changed
        case {"type": "error", "message": str(message)}:
            return frames.WarningNotice(message=clean_message(message))
        case {"type": "reasoning", "text": text}:
            return frames.ItemEndedNotice(item=_item({**item, "summary": [text]}))
        case {"type": "mcp_tool_call", "error": dict(error)}:
            return frames.ItemEndedNotice(item=_item({**item, "error": None, "result": error}))
        case _:
            return frames.ItemEndedNotice(item=_item(item))


class _TodoEntry(msgspec.Struct):
    text: str = ""
    completed: bool = False

    @property
    def step(self) -> frames.PlanStep:
        return frames.PlanStep(self.text, "completed" if self.completed else "pending")


def _item(given: dict[str, Json]) -> KnownItem:
    kind = str(given.get("type"))
    item = _camel_cased({**given, "type": _TYPES.get(kind, _camel(kind))})
    known: KnownItem = msgspec.convert(item, KnownItem)
    return known


def _camel_cased(value: Json) -> Json:
    """Return an object with its members spelt as an app-server spells them."""
    if not isinstance(value, dict):
        return value
    return {_camel(name): each for name, each in value.items()}


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


# --- errors, by Codex's own sentences ------------------------------------------------------------

# Prefixes of error messages, with the class of each. An unknown message has the class `other`:
# something failed, and nothing else is known.
_NO_STATUS: Final[dict[str, Json]] = {"httpStatusCode": None}
_ERROR_CLASSES: Final[tuple[tuple[str, Json], ...]] = (
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

# Parts of a message without information for users: notes on stdin, URLs, numbers of errors.
_IRRELEVANT_LINES: Final = re.compile(
    r"^(Reading (additional input|prompt) from stdin\.\.\.|WARNING: .*)$\n?", re.MULTILINE
)
_REQUEST_DETAILS: Final = re.compile(
    r"(, url: [^\s,]+|, (request id|cf-ray): [\w-]+| \(code -?\d+\)(, data: \{.*\})?)"
)
_LABELS: Final = re.compile(r"^(Error: |ERROR: )+", re.MULTILINE)
_REPEATED: Final = re.compile(r"\b((?:thread|turn)/\w+: )(?=(?:thread|turn)/\w+ failed)")


def clean_message(message: str) -> str:
    """Return a message without parts meant for machines, and without directories."""
    said = _server_message(message.strip())
    said = _REQUEST_DETAILS.sub("", _LABELS.sub("", _IRRELEVANT_LINES.sub("", said)))
    return strip_directories(_REPEATED.sub("", said)).strip()


def turn_error(message: str) -> frames.TurnError:
    """Return the error of a turn, as an app-server would report it."""
    return frames.TurnError(message=clean_message(message), codex_error_info=_error_class(message))


def parse_error(message: str) -> frames.ErrorNotice:
    """Return the error in a message: a retry, or the one with which the turn fails next."""
    found = _AGAIN.match(message)
    if found is None:
        return frames.ErrorNotice(error=turn_error(message))
    attempt, why = found.groups()
    error = frames.TurnError(
        message=clean_message(why or message), codex_error_info=_error_class(why or "")
    )
    return frames.ErrorNotice(error=error, will_retry=True, attempt=int(attempt or 1))


def _error_class(message: str) -> Json:
    """Return the class that an app-server would give an error."""
    said = message.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    found = _STATUS.match(said)
    if found is not None:
        return {"httpConnectionFailed": {"httpStatusCode": int(found[1])}}
    return next((known for words, known in _ERROR_CLASSES if said.startswith(words)), "other")


def _server_message(message: str) -> str:
    """Return the message in a server's answer, if it has one."""
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
