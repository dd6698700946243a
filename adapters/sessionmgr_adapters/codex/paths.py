"""Paths in what Codex complains of: a file has its name there, and not the place where it is."""

from __future__ import annotations

import re
from typing import Final

from msgspec.structs import replace

from sessionmgr.model import Failure

_QUOTED: Final = re.compile(r"""(["'`])~?/[^"'`\n]*/(?=[^"'`/\n]+\1)""")
# Not within an address, nor of two words with a stroke between them.
_PLAIN: Final = re.compile(r"""(?<![\w:/.\]])(?:file://|~)?(?:/[^\s/"'`:,;]+)+/(?=[^\s/"'`:,;])""")


def without_places(text: str) -> str:
    """Return a text in which files have their names, and not where they are."""
    return _PLAIN.sub("", _QUOTED.sub(r"\1", text))


def placeless(failure: Failure) -> Failure:
    """Return a failure that says nothing of where files are."""
    tail = failure.stderr_tail
    return replace(
        failure,
        message=without_places(failure.message),
        stderr_tail=None if tail is None else without_places(tail),
    )
