"""Tables that fit the terminal: columns as wide as their contents, the last ones truncated."""

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
"""Minimum width of a truncated column."""
WIDEST: Final = 200
"""Maximum width of a cell where lines may have any length."""


def terminal_width() -> int | None:
    """Return the width of the terminal; None where lines may have any length (a pipe, a file)."""
    if sys.stdout is not None and sys.stdout.isatty():
        return shutil.get_terminal_size().columns
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isdecimal() and int(columns) > 0 else None


def format_table(
    titles: Sequence[str], rows: Sequence[Sequence[str]], *, width: int | None, right: str = ""
) -> list[str]:
    """Return the lines of a table; the columns named in `right` are right-aligned."""
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
    """Return a table without the optional columns, in that order, that do not fit."""
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
    """Return the width of a table in which nothing is truncated."""
    widths = [
        max(display_width(one_line(row[n])) for row in content) for n in range(len(content[0]))
    ]
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _squeeze(widths: list[int], width: int) -> None:
    """Take the excess width from the last columns, then from those before them."""
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
    """Return the lines of a text beside its label; the text starts at the column `indent`."""
    begin = f"{label:<{indent - 1}} "
    line = begin + one_line(text)
    if width is None or display_width(line) <= width:
        return [line.rstrip()]
    return textwrap.wrap(
        line,
        width=max(width, indent + NARROWEST),
        subsequent_indent=" " * indent,
        break_long_words=False,  # paths and ids are copied from there
        break_on_hyphens=False,
    )


def _align(text: str, width: int, *, right: bool) -> str:
    blanks = " " * (width - display_width(text))
    return blanks + text if right else text + blanks
