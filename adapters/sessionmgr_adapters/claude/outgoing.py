"""Messages to Claude Code on its stdin: one JSON object a line.

It exits on a line that is not JSON and on a message without a role; older versions also exit on a
blank line. So this module encodes everything that is written there.

Claude Code interprets prompts: `/` at the start runs a command, `@path` adds a file. Newer versions
can be told to take one literally (`client_composed`). Older versions cannot, and none can where the
prompt is plain text; there `@` counts unless a character precedes it.
"""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from sessionmgr.adapter.kit import config_failure, read_images, version_numbers
from sessionmgr.model import Json, encode_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.adapter.kit import PromptImage
    from sessionmgr.model import Failure

LITERAL_SINCE: Final = (2, 1, 248)
"""The first version that can be told to take a prompt literally."""
# Which signs make it no file is known of those of ASCII alone.
_FILE: Final = re.compile(r"(?<![!-~])@(?:\"[^\"]*\"|[^\s@]\S*)")
_SHOWN: Final = 80


class ClaudeUserMessage(msgspec.Struct, frozen=True, kw_only=True):
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


class ControlRefusedError(Exception):
    """Claude Code refuses a request without which the run cannot go on."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure: Final = failure


class ControlResponse(msgspec.Struct, frozen=True, kw_only=True):
    """An answer to a request of Claude Code's."""

    id: str
    response: Json = None
    error: str | None = None


ClaudeOutgoing: TypeAlias = ClaudeUserMessage | ControlRequest | ControlResponse


def encode_outgoing(told: ClaudeOutgoing) -> bytes:
    """Return the line that says it."""
    return encode_json(_line(told)) + b"\n"


def _line(told: ClaudeOutgoing) -> dict[str, Json]:
    match told:
        case ClaudeUserMessage():
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


# --- prompts -------------------------------------------------------------------------------------


async def content_blocks(prompt: str, paths: Sequence[str], cwd: str) -> Json:
    """Return the content of a prompt with images.

    Raises:
        ImageRefusedError: One of them is no image that can be sent, or they are too many.
    """
    images = await read_images(paths, cwd)
    if not images:
        return prompt
    return [{"type": "text", "text": prompt}, *map(_block, images)]


def _block(image: PromptImage) -> Json:
    encoded = base64.b64encode(image.data).decode()
    source: Json = {"type": "base64", "media_type": image.media_type, "data": encoded}
    return {"type": "image", "source": source}


def is_slash_command(text: str) -> bool:
    """Whether a text would run a command."""
    return text.lstrip().startswith("/")


def special_meaning(text: str) -> str | None:
    """Return how a text would be interpreted; None if it is plain words."""
    if is_slash_command(text):
        return "begins with '/', which is taken for a command"
    file = _FILE.search(text)
    if file is not None:
        return f"says {file.group()[:_SHOWN]!r}, for which the file of that name is added"
    return None


def prompt_syntax_failure(text: str, version: str | None) -> Failure | None:
    """Return the failure of a prompt that this version would interpret."""
    found = version_numbers(version)
    wrong = special_meaning(text)
    if wrong is None or (found is not None and found >= LITERAL_SINCE):
        return None
    since = ".".join(map(str, LITERAL_SINCE))
    return config_failure(
        f"the prompt {wrong} by Claude Code before {since}; the option slash_commands lets it"
    )
