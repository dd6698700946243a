"""Tables that fit: columns as wide as what is in them, the last ones cut where room ends."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING, Final
from unicodedata import combining, east_asian_width

from sessionmgr.cli.words import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

GAP: Final = "  "
NARROWEST: Final = 8
"""A column that is cut keeps so much, if it had as much."""
WIDEST: Final = 200
"""Where nothing limits the width, no cell is wider."""


def room() -> int | None:
    """Return how many columns there are; None where lines may have any length (a pipe, a file)."""
    if sys.stdout is not None and sys.stdout.isatty():
        return shutil.get_terminal_size().columns
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isdecimal() and int(columns) > 0 else None


def table(
    titles: Sequence[str], rows: Sequence[Sequence[str]], *, width: int | None, right: str = ""
) -> list[str]:
    """Make the lines of a table; the columns named in `right` are set to the right."""
    cells = [list(titles), *([one_line(cell) for cell in row] for row in rows)]
    widths = [max(min(columns(row[n]), WIDEST) for row in cells) for n in range(len(titles))]
    if width is not None:
        _squeeze(widths, width)
    to_the_right = [title in right.split() for title in titles]
    lines: list[str] = []
    for row in cells:
        fitted = [
            pad(cut(cell, size), size, right=side)
            for cell, size, side in zip(row, widths, to_the_right, strict=True)
        ]
        lines.append(GAP.join(fitted).rstrip())
    return lines


def _squeeze(widths: list[int], width: int) -> None:
    """Take from the last columns what is too much, then from those before them."""
    excess = sum(widths) + len(GAP) * (len(widths) - 1) - width
    for n in reversed(range(len(widths))):
        if excess <= 0:
            return
        taken = min(excess, max(0, widths[n] - NARROWEST))
        widths[n] -= taken
        excess -= taken
    for n in reversed(range(len(widths))):
        if excess <= 0:
            return
        taken = min(excess, widths[n] - 1)
        widths[n] -= taken
        excess -= taken


def columns(text: str) -> int:
    """Return how many columns of a terminal the text takes."""
    if text.isascii():
        return len(text)
    return sum(_columns(character) for character in text)


def cut(text: str, width: int) -> str:
    """Return the text, cut to a width; what is cut ends in an ellipsis."""
    if columns(text) <= width:
        return text
    kept, used = "", 0
    for character in text:
        used += _columns(character)
        if used > width - 1:
            break
        kept += character
    return f"{kept}…"


def pad(text: str, width: int, *, right: bool = False) -> str:
    """Fill the text up with blanks to a width."""
    blanks = " " * (width - columns(text))
    return blanks + text if right else text + blanks


def _columns(character: str) -> int:
    if combining(character) or character in "\u200b\u200d\ufe0e\ufe0f":
        return 0
    return 2 if east_asian_width(character) in "WF" else 1
