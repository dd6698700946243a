"""Colour for a line, where it may have some: on a terminal, where rich is there to speak to it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TextIO, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

Ink: TypeAlias = Callable[[str, str], str]
"""Returns a text, which is safe already, in a tone: faint, good, warning, bad, plain."""

STYLES: Final = {"faint": "dim", "good": "green", "warning": "yellow", "bad": "bold red"}


def no_ink(text: str, tone: str) -> str:
    """Return the text as it is."""
    del tone
    return text


def ink_for(stream: TextIO, environ: Mapping[str, str] = os.environ) -> Ink:
    """Return what colours lines for this stream, which may be nothing."""
    if not stream.isatty() or environ.get("NO_COLOR") or environ.get("TERM", "dumb") == "dumb":
        return no_ink
    try:
        from rich.console import Console
        from rich.text import Text
    except ImportError:  # it comes with the extra `cli`
        return no_ink
    console = Console(file=stream, highlight=False, force_terminal=True)

    def coloured(text: str, tone: str) -> str:
        style = STYLES.get(tone)
        if style is None:
            return text
        with console.capture() as captured:
            console.print(Text(text, style), end="", soft_wrap=True)
        return captured.get()

    return coloured
