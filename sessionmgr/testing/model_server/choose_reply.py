"""The choice of the reply to a request, as a pure function of the request.

The last prompt that carries a script decides. The conversation shows how many of its replies were
given: by the ids of calls, and by the texts after the prompt. Retries, other sessions and a restart
of the server therefore do not change the choice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec

from sessionmgr.model import Json
from sessionmgr.testing.model_server.request import (
    ModelMessage,
    ModelRequest,
    ModelToolCall,
    ModelToolResult,
    RequestItem,
    TruncatedReply,
    UserInterrupt,
    UserPrompt,
    reply_of,
)
from sessionmgr.testing.model_server.sample_value import sample_value
from sessionmgr.testing.model_server.script import (
    ModelCall,
    ModelRefuse,
    ModelReply,
    ModelSay,
    ModelScript,
    prompt_with,
    script_in,
    text_without_script,
)

Scripts: TypeAlias = Mapping[str, ModelScript] | Callable[[ModelRequest], ModelReply | None]
"""Scripts by prompt; or a function that returns a reply, or None to use the prompt's script."""

STRUCTURED = "StructuredOutput"
"""The tool by which Claude Code requests output that is valid against a schema."""


class PlannedReply(msgspec.Struct, frozen=True):
    """A reply, its index in its script, and the number of earlier attempts at it."""

    reply: ModelReply
    number: int
    attempt: int = 0


def choose_reply(request: ModelRequest, scripts: Scripts | None = None) -> PlannedReply:
    """Return the reply to a request."""
    if callable(scripts):
        given, broken = _count_replies(request.items)
        reply = scripts(request)
        if reply is not None:
            return PlannedReply(reply, given, request.attempt + broken)
        scripts = None
    try:
        at, script = _find(request, scripts)
    except msgspec.ValidationError as error:
        return PlannedReply((ModelRefuse(status=400, message=str(error)),), 0)
    if script is None:
        return PlannedReply(_default_reply(request), 0)
    given, broken = _count_replies(request.items[at + 1 :])
    if request.purpose == "compaction":
        # After the summary only the summary remains, so it carries the rest of the script.
        return PlannedReply(
            (_summary(prompt_with(script[given:], "What was said, in short.")),), given
        )
    if given < len(script):
        return PlannedReply(script[given], given, request.attempt + broken)
    return PlannedReply(_default_reply(request), given)


def _find(
    request: ModelRequest, scripts: Mapping[str, ModelScript] | None
) -> tuple[int, ModelScript | None]:
    """Return the current script, and the position of its prompt in the conversation."""
    for at in range(len(request.items) - 1, -1, -1):
        item = request.items[at]
        if isinstance(item, UserInterrupt):
            break
        if not isinstance(item, UserPrompt):
            continue
        script = None if scripts is None else scripts.get(item.text.strip())
        script = script_in(item.text) if script is None else script
        if script is not None:
            return at, script
    return 0, None


def _count_replies(items: tuple[RequestItem, ...]) -> tuple[int, int]:
    """Return the number of complete replies, and of attempts at the next that were broken off."""
    given = before = broken = 0
    speaking = False
    for item in items:
        speaks = isinstance(item, ModelMessage | ModelToolCall)
        if speaks and not speaking:
            before, given = given, given + 1
        if isinstance(item, ModelToolCall) and (made_by := reply_of(item.id)) is not None:
            given = made_by + 1
        if isinstance(item, TruncatedReply):
            given, broken = before, broken + 1
        elif isinstance(item, ModelToolResult):
            broken = 0
        speaking = speaks
    return given, broken


def _summary(text: str) -> ModelSay:
    # Claude Code expects a summary between tags, and asks again without them.
    return ModelSay(text=f"<summary>{text}</summary>")


def _default_reply(request: ModelRequest) -> ModelReply:
    """Return a reply for a prompt without a script: the required output, or an echo."""
    if request.purpose == "compaction":
        return (_summary("What was said, in short."),)
    if request.schema is not None:
        return (ModelSay(text=msgspec.json.encode(sample_value(request.schema)).decode()),)
    wanted = next((tool for tool in request.tools if tool.name == STRUCTURED), None)
    if wanted is not None and wanted.schema is not None and not request.results:
        value: Json = sample_value(wanted.schema)
        return (ModelCall(tool=STRUCTURED, input=value if isinstance(value, dict) else {}),)
    said = text_without_script(request.prompt)
    return (ModelSay(text=f"You said: {said}" if said else "Done."),)
