"""What a text is taken for that is not told to be one: a command, or words with files to them.

Newer ones can be told (`client_composed`). Older ones cannot, and nor can any that is given plain
text: there `/` at the start runs a command, and `@path` adds a file but where a sign precedes it.
"""

from __future__ import annotations

import re
from typing import Final

from sessionmgr.model import Failure, FailureKind
from sessionmgr_adapters.claude.claude_process import numbers

LITERAL_SINCE: Final = (2, 1, 248)
"""From then on a prompt can be told to be a text, whatever it says."""
# Which signs make it no file is known of those of ASCII alone.
_FILE: Final = re.compile(r"(?<![!-~])@(?:\"[^\"]*\"|[^\s@]\S*)")
_SHOWN: Final = 80


def is_command(text: str) -> bool:
    """Whether a text would be taken for a command."""
    return text.lstrip().startswith("/")


def misreading(text: str) -> str | None:
    """Say what a text would be taken for that is not told to be one."""
    if is_command(text):
        return "begins with '/', which is taken for a command"
    file = _FILE.search(text)
    if file is not None:
        return f"says {file.group()[:_SHOWN]!r}, for which the file of that name is added"
    return None


def literal_failure(text: str, version: str | None) -> Failure | None:
    """Return the failure that a prompt is which a version would take for something else."""
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
