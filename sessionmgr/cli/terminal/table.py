"""Tables that fit: columns as wide as what is in them, the last ones cut where room ends."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from typing import TYPE_CHECKING, Final

from sessionmgr.cli.terminal.safe_text import display_width, one_line, truncate

if TYPE_CHECKING:
    from collections.abc import Sequence

GAP: Final = "  "
NARROWEST: Final = 8
"""A column that is cut keeps so much, if it had as much."""
WIDEST: Final = 200
"""Where nothing limits the width, no cell is wider."""


def terminal_width() -> int | None:
    """Return how many columns there are; None where lines may have any length (a pipe, a file)."""
    if sys.stdout is not None and sys.stdout.isatty():
        return shutil.get_terminal_size().columns
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isdecimal() and int(columns) > 0 else None


def format_table(
    titles: Sequence[str], rows: Sequence[Sequence[str]], *, width: int | None, right: str = ""
) -> list[str]:
    """Make the lines of a table; the columns named in `right` are set to the right."""
    content = [list(titles), *([one_line(cell) for cell in row] for row in rows)]
    widths = [
        max(min(display_width(row[n]), WIDEST) for row in content) for n in range(len(titles))
    ]
    if width is not None:
        _squeeze(widths, width)
    to_the_right = [title in right.split() for title in titles]
    lines: list[str] = []
    for row in content:
        fitted = [
            _align(truncate(cell, size), size, right=side)
            for cell, size, side in zip(row, widths, to_the_right, strict=True)
        ]
        lines.append(GAP.join(fitted).rstrip())
    return lines


def without_excess(
    titles: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    width: int | None,
    optional: Sequence[str],
) -> tuple[list[str], list[list[str]]]:
    """Return a table without those optional columns, in that order, for which it has no room."""
    left, cut = list(titles), [list(row) for row in rows]
    for title in optional:
        if width is None or natural_width([left, *cut]) <= width:
            break
        if title in left:
            at = left.index(title)
            for row in (left, *cut):
                del row[at]
    return left, cut


def natural_width(content: Sequence[Sequence[str]]) -> int:
    """Return how many columns a table takes of which nothing is cut."""
    widths = [
        max(display_width(one_line(row[n])) for row in content) for n in range(len(content[0]))
    ]
    return sum(widths) + len(GAP) * (len(widths) - 1)


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


def format_labelled(label: str, text: str, *, indent: int, width: int | None) -> list[str]:
    """Return the lines of a text beside its label, from the column `indent` on."""
    begin = f"{label:<{indent - 1}} "
    line = begin + one_line(text)
    if width is None or display_width(line) <= width:
        return [line.rstrip()]
    return textwrap.wrap(
        line,
        width=max(width, indent + NARROWEST),
        subsequent_indent=" " * indent,
        break_long_words=False,  # a path, or an id, is copied from there
        break_on_hyphens=False,
    )


def _align(text: str, width: int, *, right: bool) -> str:
    blanks = " " * (width - display_width(text))
    return blanks + text if right else text + blanks
