"""Messages to Claude Code on its stdin: one JSON object per line.

It exits on a line that is not JSON and on a message without a role; older versions also exit on a
blank line. So this module encodes everything that is written there.

Claude Code interprets prompts: `/` at the start runs a command, `@path` adds a file. Newer versions
accept a flag that makes a prompt literal (`client_composed`). Older versions do not, and no version
does in plain text, where `@` is interpreted unless a character precedes it.
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
"""The first version that accepts literal prompts."""
# Only for ASCII characters is it known that `@` after them does not start a file.
_FILE: Final = re.compile(r"(?<![!-~])@(?:\"[^\"]*\"|[^\s@]\S*)")
_SHOWN: Final = 80


class ClaudeUserMessage(msgspec.Struct, frozen=True, kw_only=True):
    """Prompt, or follow-up to a running turn. The agent refers to it by its uuid."""

    content: Json
    uuid: str
    priority: str | None = None
    is_text: bool = True
    """Whether `/` and `@` are literal characters, and not commands."""


class ControlRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Request of ours; the reply names its id."""

    id: str
    subtype: str
    fields: dict[str, Json] = msgspec.field(default_factory=dict[str, Json])


class ControlRefusedError(Exception):
    """Claude Code refuses a request without which the run cannot continue."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure: Final = failure


class ControlResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to a request of Claude Code."""

    id: str
    response: Json = None
    error: str | None = None


ClaudeOutgoing: TypeAlias = ClaudeUserMessage | ControlRequest | ControlResponse


def encode_outgoing(outgoing: ClaudeOutgoing) -> bytes:
    """Return a message as a line."""
    return encode_json(_line(outgoing)) + b"\n"


def _line(outgoing: ClaudeOutgoing) -> dict[str, Json]:
    match outgoing:
        case ClaudeUserMessage():
            message: dict[str, Json] = {"role": "user", "content": outgoing.content}
            line: dict[str, Json] = {"type": "user", "message": message, "uuid": outgoing.uuid}
            if outgoing.priority is not None:
                line["priority"] = outgoing.priority
            if outgoing.is_text:
                line["client_composed"] = True
            return line
        case ControlRequest():
            request: dict[str, Json] = {"subtype": outgoing.subtype, **outgoing.fields}
            return {"type": "control_request", "request_id": outgoing.id, "request": request}
        case ControlResponse():
            body: dict[str, Json] = {"subtype": "success", "request_id": outgoing.id}
            if outgoing.error is None:
                body["response"] = outgoing.response
            else:
                body |= {"subtype": "error", "error": outgoing.error}
            return {"type": "control_response", "response": body}


# --- prompts -------------------------------------------------------------------------------------


async def content_blocks(prompt: str, paths: Sequence[str], cwd: str) -> Json:
    """Return the content of a prompt with images.

    Raises:
        ImageRefusedError: An image cannot be sent, or there are too many.
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
    """Whether Claude Code would run a text as a command."""
    return text.lstrip().startswith("/")


def special_meaning(text: str) -> str | None:
    """Return how Claude Code would interpret a text; None if it is literal."""
    if is_slash_command(text):
        return "begins with '/', which is interpreted as a command"
    file = _FILE.search(text)
    if file is not None:
        return f"contains {file.group()[:_SHOWN]!r}, which is replaced by the file of that name"
    return None


def prompt_syntax_failure(text: str, version: str | None) -> Failure | None:
    """Return the failure for a prompt that this version would interpret."""
    found = version_numbers(version)
    wrong = special_meaning(text)
    if wrong is None or (found is not None and found >= LITERAL_SINCE):
        return None
    since = ".".join(map(str, LITERAL_SINCE))
    return config_failure(
        f"the prompt {wrong} by Claude Code before {since}; "
        "set the option slash_commands to permit this"
    )
