"""Prompts that Claude Code would interpret: `/` at the start runs a command, `@path` adds a file.

Newer versions can be told to take a prompt literally (`client_composed`). Older versions cannot,
and none can where the prompt is plain text; there `@` counts unless a character precedes it.
"""

from __future__ import annotations

import re
from typing import Final

from sessionmgr.model import Failure, FailureKind
from sessionmgr_adapters.claude.claude_process import numbers

LITERAL_SINCE: Final = (2, 1, 248)
"""The first version that can be told to take a prompt literally."""
# Which signs make it no file is known of those of ASCII alone.
_FILE: Final = re.compile(r"(?<![!-~])@(?:\"[^\"]*\"|[^\s@]\S*)")
_SHOWN: Final = 80


def is_command(text: str) -> bool:
    """Whether a text would run a command."""
    return text.lstrip().startswith("/")


def misreading(text: str) -> str | None:
    """Return how a text would be interpreted; None if it is plain words."""
    if is_command(text):
        return "begins with '/', which is taken for a command"
    file = _FILE.search(text)
    if file is not None:
        return f"says {file.group()[:_SHOWN]!r}, for which the file of that name is added"
    return None


def literal_failure(text: str, version: str | None) -> Failure | None:
    """Return the failure of a prompt that this version would interpret."""
    found = numbers(version)
    wrong = misreading(text)
    if wrong is None or (found is not None and found >= LITERAL_SINCE):
        return None
    since = ".".join(map(str, LITERAL_SINCE))
    return Failure(
        kind=FailureKind.CONFIG_INVALID,
        message=f"the prompt {wrong} by Claude Code before {since}; the option slash_commands "
        "lets it",
        phase="start",
    )
