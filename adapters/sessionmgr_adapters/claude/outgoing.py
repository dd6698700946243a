"""Messages to Claude Code on its stdin: one JSON object a line.

It exits on a line that is not JSON and on a message without a role; older versions also exit on a
blank line. So this module encodes everything that is written there.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from sessionmgr.model import Json, encode_json


class UserMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt, or another message while a turn is on. The agent refers to it by its uuid."""

    content: Json
    uuid: str
    priority: str | None = None
    is_text: bool = True
    """Whether `/` and `@` in it are characters, and no commands."""


class ControlRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request of ours, which is answered by its id."""

    id: str
    subtype: str
    fields: dict[str, Json] = msgspec.field(default_factory=dict[str, Json])


class ControlResponse(msgspec.Struct, frozen=True, kw_only=True):
    """An answer to a request of Claude Code's."""

    id: str
    response: Json = None
    error: str | None = None


Outgoing: TypeAlias = UserMessage | ControlRequest | ControlResponse


def encode(told: Outgoing) -> bytes:
    """Return the line that says it."""
    return encode_json(_line(told)) + b"\n"


def _line(told: Outgoing) -> dict[str, Json]:
    match told:
        case UserMessage():
            message: dict[str, Json] = {"role": "user", "content": told.content}
            line: dict[str, Json] = {"type": "user", "message": message, "uuid": told.uuid}
            if told.priority is not None:
                line["priority"] = told.priority
            if told.is_text:
                line["client_composed"] = True
            return line
        case ControlRequest():
            request: dict[str, Json] = {"subtype": told.subtype, **told.fields}
            return {"type": "control_request", "request_id": told.id, "request": request}
        case ControlResponse():
            body: dict[str, Json] = {"subtype": "success", "request_id": told.id}
            if told.error is None:
                body["response"] = told.response
            else:
                body |= {"subtype": "error", "error": told.error}
            return {"type": "control_response", "response": body}
