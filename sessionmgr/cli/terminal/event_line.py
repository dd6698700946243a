"""Events as single lines of text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import UNSET

from sessionmgr.cli.terminal.format import format_cost, format_tokens
from sessionmgr.cli.terminal.format_time import format_clock
from sessionmgr.cli.terminal.safe_text import escape_controls, one_line, truncate
from sessionmgr.model import Cost, Event, Failure, Negotiation, Permission, Usage, parse_timestamp

if TYPE_CHECKING:
    from sessionmgr.model import AnyEvent, Json

LONGEST: Final = 400
TYPE_WIDTH: Final = 23
_BEFORE_TEXT: Final = 7 + 14 + 2 + TYPE_WIDTH + 2
"""Width of an event's number, time and type."""
_NARROWEST: Final = 20
_ENVELOPE: Final = frozenset(Event.__struct_fields__)
# Fields that the line shows elsewhere, or that are of no use to a reader.
_PASSED_OVER: Final = frozenset({"total", "provenance", "message_id", "tool_call_id"})


def event_line(event: AnyEvent, now: float, width: int | None = None) -> str:
    """Format an event: its number, time, type and contents."""
    try:
        when = format_clock(parse_timestamp(event.at), now)
    except ValueError:
        when = "?"
    indent = "" if getattr(event, "parent_tool_call_id", UNSET) is UNSET else "  "
    said = one_line(event_text(event))
    written = event.type if isinstance(event, Event) else event.tag
    line = f"{event.seq:>5}  {when}  {indent}{written:<{TYPE_WIDTH}}  {said}".rstrip()
    return truncate(line, min(width or LONGEST, LONGEST))


def text_width(width: int | None) -> int:
    """Return the width for a streamed event's text on a line of that width."""
    return max(_NARROWEST, min(width or LONGEST, LONGEST) - _BEFORE_TEXT)


def event_text(event: AnyEvent) -> str:
    """Return the contents of an event, without its type."""
    if not isinstance(event, Event):
        return ""
    fields: dict[str, object] = {
        name: getattr(event, name) for name in event.__struct_fields__ if name not in _ENVELOPE
    }
    match event.type:
        case "message_sent":
            return f"({fields['state']}) {_text(fields['content'])}"
        case "message_received" | "reasoning_received":
            return _text(fields["content"])
        case "message_streamed" | "reasoning_streamed":
            return _text(fields["delta"])
        case "output_received":
            return f"{fields['stream']}: {fields['text']}"
        case "tool_call_started":
            return f"{fields['tool_name']} {_text(fields['tool_input'])}"
        case "tool_call_updated":
            return _text(fields["output_delta"])
        case "tool_call_completed" | "tool_call_failed":
            return f"{fields['tool_name']} {_text(fields['tool_output'])}"
        case "tool_approval_requested" | "tool_approval_granted" | "tool_approval_denied":
            what = f"{fields['tool_name']} {_text(fields['tool_input'])}".strip()
            why = [_text(fields["reason"]), _text(fields["by"] and f"by {fields['by']}")]
            said = ", ".join(filter(None, [what, *why, _text(fields["approval_id"])]))
            return escape_controls(said.replace("\n", " "))  # the user approves based on this text
        case "run_started":
            return _in_order(fields, "model", "permission", "negotiation", "resumed_from")
        case "error_occurred":
            return f"{fields['severity']}: {_text(fields['failure'])}"
        case _:
            return _in_order(fields, *(name for name in fields if name not in _PASSED_OVER))


def _in_order(fields: dict[str, object], *names: str) -> str:
    texts = {name: _text(fields[name]) for name in names}
    return ", ".join(f"{name} {text}" for name, text in texts.items() if text)


def _text(value: object) -> str:
    if not value:
        return ""
    match value:
        case str():
            return value
        case Failure():
            return f"{value.kind}: {value.message}"
        case Usage():
            return format_tokens(value)
        case Cost():
            return format_cost(value.usd, value.provenance)
        case Permission():
            return f"{value.asked} ({value.effective}, {value.fidelity})"
        case Negotiation(granted=granted):
            return ", ".join(granted)
        case _:
            return command_text(msgspec.to_builtins(value))


def command_text(value: Json) -> str:
    """Return the command alone if it is the tool's only input, else the input as JSON."""
    if isinstance(value, dict) and len(value) == 1 and isinstance(value.get("command"), str):
        return str(value["command"])
    return msgspec.json.encode(value).decode()
