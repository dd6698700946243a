"""The texts that agents themselves send to a model: reminders in prompts, and extra requests."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sessionmgr.testing.model_server.request import Purpose

_TAG: Final = (
    r"(system-reminder|system_reminder|system|info-msg|session_context|environment_context"
    r"|current_datetime|turn-context|reminder|system_notification)"
)
_LEADING: Final = re.compile(rf"\s*<{_TAG}>.*?</\1>\s*", re.DOTALL)
_TRAILING: Final = re.compile(rf"\s*<{_TAG}>(?:(?!</?\1>).)*</\1>\s*\Z", re.DOTALL)

_COMPACTION: Final = re.compile(
    r"context summarization|distilling chat history|compacts conversation context"
    r"|context limit was reached",
    re.IGNORECASE,
)
"""In the instructions of a request without tools."""
_SUMMARIZE: Final = (
    "You are about to run out of context. Create a handoff summary",
    "Please create a detailed summary of the conversation so far.",
)
"""The start of a message that asks for a summary, in a request with the tools of a turn."""
_BESIDE: Final = ("Your task is to generate a very short title", "[SUGGESTION MODE: ")
"""The start of a message beside the turns, in a request with their tools."""
_AUXILIARY: Final = re.compile(
    r"title generator|generate a (?:short |brief |concise )?title|naming a coding session"
    r"|task routing ai",
    re.IGNORECASE,
)


def without_reminders(text: str) -> str:
    """Return the user's part of a message, without the reminders that an agent puts around it."""
    while (found := _LEADING.match(text)) is not None:
        text = text[found.end() :]
    while (found := _TRAILING.search(text)) is not None:
        text = text[: found.start()]
    return text


def session_of(instructions: str) -> str:
    """Return a name for a session whose agent sends none: a digest of its instructions.

    They contain the working directory, and often the time of the session's start.
    """
    return hashlib.sha256(instructions.encode()).hexdigest()[:16] if instructions else ""


def purpose_of(instructions: str, last: str, *, offers_tools: bool) -> Purpose:
    """Return the purpose of a request, from its instructions and its last user message.

    Args:
        instructions: The system prompt of the request.
        last: The last message of the user.
        offers_tools: Whether the request offers tools, as those for a turn do.
    """
    if last.lstrip().startswith(_SUMMARIZE):
        return "compaction"
    if last.lstrip().startswith(_BESIDE):
        return "auxiliary"
    if offers_tools:
        return "turn"
    if _COMPACTION.search(instructions):
        return "compaction"
    return "auxiliary" if _AUXILIARY.search(instructions) else "turn"
