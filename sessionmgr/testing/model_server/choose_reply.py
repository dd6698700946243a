"""The choice of the reply to a request, as a pure function of the request.

The last prompt that carries a script decides. The conversation shows how many of its replies were
given: by the ids of calls, and by the texts after the prompt. Retries, other sessions and a restart
of the server therefore do not change the choice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Final, TypeAlias, TypeGuard

import msgspec

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
    CLOSING,
    OPENING,
    SUMMARY,
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

COMPLETE = "complete_task"
"""The tool by which a sub-agent of Gemini CLI must end its task."""

TITLE = "Scripted session"
"""The answer to a request beside the turns, which usually wants a title."""

_POSITION: Final = "Replies so far: "
_BEFORE: Final = re.compile(rf"{_POSITION}(\d+)\. {OPENING}")
_ROLE: Final = re.compile(r"^\W*(?:role: )?(assistant|user|tool)\b", re.IGNORECASE | re.MULTILINE)


class PlannedReply(msgspec.Struct, frozen=True):
    """A reply, its index in its script, and the number of earlier attempts at it."""

    reply: ModelReply
    number: int
    attempt: int = 0


def choose_reply(
    request: ModelRequest, scripts: Scripts | None = None, default: ModelScript | None = None
) -> PlannedReply:
    """Return the reply to a request; `default` is the script of prompts that have none."""
    if callable(scripts):
        given, broken = _count_replies(request.items)
        reply = scripts(request)
        if reply is not None:
            return PlannedReply(reply, given, request.attempt + broken)
        scripts = None
    if request.purpose == "auxiliary":
        return PlannedReply(_default_reply(request), 0)
    try:
        found = _find(request, scripts) or _find_default(request, default)
    except msgspec.ValidationError as error:
        return PlannedReply((ModelRefuse(status=400, message=str(error)),), 0)
    if found is None:
        return PlannedReply(_default_reply(request), 0)
    at, script, before = found
    given, broken = _count_replies(request.items[at + 1 :], before)
    if request.purpose == "compaction":
        if given == before:
            given += _count_in_transcript(request.items[at:])
        # After the summary only the summary remains, so it carries the script and the position.
        said = f"What was said, in short. {_POSITION}{given}."
        return PlannedReply((_summary(prompt_with(script, said)),), given)
    if given < len(script):
        return PlannedReply(script[given], given, request.attempt + broken)
    return PlannedReply(_default_reply(request), given)


def _find(
    request: ModelRequest, scripts: Mapping[str, ModelScript] | None
) -> tuple[int, ModelScript, int] | None:
    """Return the position of the current prompt, its script, and its replies before the prompt."""
    for at in range(len(request.items) - 1, -1, -1):
        item = request.items[at]
        if isinstance(item, UserInterrupt):
            break
        if not isinstance(item, UserPrompt) and not _is_summary(item):
            continue
        script = None if scripts is None else scripts.get(item.text.strip())
        if script is not None:
            return at, script, 0
        script = script_in(item.text)
        if script is not None:
            before = _BEFORE.findall(item.text)
            return at, script, int(before[-1]) if before else 0
    return None


def _find_default(
    request: ModelRequest, default: ModelScript | None
) -> tuple[int, ModelScript, int] | None:
    for at in range(len(request.items) - 1, -1, -1):
        if default is not None and isinstance(request.items[at], UserPrompt):
            return at, default, 0
    return None


def _is_summary(item: RequestItem) -> TypeGuard[ModelMessage]:
    """Return whether a message is a summary of ours, which some agents keep as the model's."""
    return isinstance(item, ModelMessage) and item.text.lstrip().startswith(SUMMARY)


def _count_replies(items: tuple[RequestItem, ...], given: int = 0) -> tuple[int, int]:
    """Return the number of complete replies, and of attempts at the next that were broken off.

    Args:
        items: The conversation after the prompt.
        given: The number of replies before the prompt, which is a summary.
    """
    before, broken = given, 0
    speaking = False
    for item in items:
        speaks = isinstance(item, ModelMessage | ModelToolCall)
        if speaks and not speaking:
            before, given = given, given + 1
        if isinstance(item, ModelToolCall) and (made_by := reply_of(item.id)) is not None:
            given = made_by + 1
        if isinstance(item, TruncatedReply):
            # What was cut off may be missing: an empty reply leaves nothing in the conversation.
            given, broken = before if speaking else given, broken + 1
        elif isinstance(item, ModelToolResult):
            broken = 0
        speaking = speaks
    return given, broken


def _count_in_transcript(items: tuple[RequestItem, ...]) -> int:
    """Return the number of replies in a conversation that a prompt contains as a text."""
    text = "\n".join(item.text for item in items if isinstance(item, UserPrompt))
    roles = [found.lower() for found in _ROLE.findall(text[text.rfind(CLOSING) :])]
    return sum(
        role == "assistant" and earlier != "assistant"
        for earlier, role in pairwise(["user", *roles])
    )


def _summary(text: str) -> ModelSay:
    # Claude Code expects a summary between tags, and asks again without them.
    return ModelSay(text=f"{SUMMARY}{text}</summary>")


def _default_reply(request: ModelRequest) -> ModelReply:
    """Return a reply for a prompt without a script: the required output, or an echo."""
    if request.purpose == "compaction":
        return (_summary("What was said, in short."),)
    if request.schema is not None:
        return (ModelSay(text=msgspec.json.encode(sample_value(request.schema)).decode()),)
    if request.purpose == "auxiliary":
        return (ModelSay(text=TITLE),)
    wanted = next((tool for tool in request.tools if tool.name == STRUCTURED), None)
    if wanted is not None and wanted.schema is not None and not request.results:
        value = sample_value(wanted.schema)
        return (ModelCall(tool=STRUCTURED, input=value if isinstance(value, dict) else {}),)
    finish = next((tool for tool in request.tools if tool.name == COMPLETE), None)
    if finish is not None:
        value = sample_value(finish.schema or {})
        return (ModelCall(tool=COMPLETE, input=value if isinstance(value, dict) else {}),)
    said = text_without_script(request.prompt)
    return (ModelSay(text=f"You said: {said}" if said else "Done."),)
