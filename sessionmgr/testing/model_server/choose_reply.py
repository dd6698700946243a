"""Which reply a request is answered with: a function of the request, and of nothing else.

The last prompt that carries a script decides. How many of its replies have been given is read
from the conversation: the ids of calls tell it, and so do the texts that were said since. So
neither a retry, nor another session, nor a server that was started anew makes a difference.
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
"""Scripts by prompt; or a function that replies itself, or leaves it to the prompt by None."""

STRUCTURED = "StructuredOutput"
"""The tool by which Claude Code asks for output that is valid against a schema."""


class PlannedReply(msgspec.Struct, frozen=True):
    """A reply, the how manieth of its script it is, and how often it was tried before."""

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
        # What is left of the script goes on after it, since the summary is all that stays.
        return PlannedReply(
            (_summary(prompt_with(script[given:], "What was said, in short.")),), given
        )
    if given < len(script):
        return PlannedReply(script[given], given, request.attempt + broken)
    return PlannedReply(_default_reply(request), given)


def _find(
    request: ModelRequest, scripts: Mapping[str, ModelScript] | None
) -> tuple[int, ModelScript | None]:
    """Return the script that is being played, and where in the conversation it was asked for."""
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
    """Return how many replies have been given whole, and how often the next was broken off."""
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
    # Claude Code wants it between tags, and asks again if they are not there.
    return ModelSay(text=f"<summary>{text}</summary>")


def _default_reply(request: ModelRequest) -> ModelReply:
    """Answer a prompt that asks for no script: with what was asked for, as an echo does."""
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
