"""Colour of lines on a terminal."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TextIO, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

Ink: TypeAlias = Callable[[str, str], str]
"""Returns safe text in the colour of a tone: faint, good, warning, bad, plain."""

# Attributes that all terminals support: dim, green, yellow, bold red.
STYLES: Final = {"faint": "2", "good": "32", "warning": "33", "bad": "1;31"}


def uncoloured(text: str, tone: str) -> str:
    """Return the text as it is."""
    del tone
    return text


def coloured(text: str, tone: str) -> str:
    """Return the text in the colour of its tone."""
    style = STYLES.get(tone)
    return f"\x1b[{style}m{text}\x1b[0m" if style and text else text


def colour_for(stream: TextIO, environ: Mapping[str, str] = os.environ) -> Ink:
    """Return the colouring for this stream: none unless it is a terminal with colours."""
    if not stream.isatty() or environ.get("NO_COLOR") or environ.get("TERM", "dumb") == "dumb":
        return uncoloured
    return coloured
