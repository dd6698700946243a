"""Pieces of Markdown: tables, headings and the anchors of headings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; a column that is empty in all rows is left out."""
    lines = [list(map(_cell, row)) for row in rows]
    used = [number for number in range(len(heads)) if any(line[number] for line in lines)]
    shown = [[heads[number] for number in used], ["---"] * len(used)]
    shown += [[line[number] for number in used] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in shown)


def section(*blocks: str) -> str:
    """Return blocks of Markdown as one text; empty blocks are left out."""
    return "\n\n".join(filter(None, blocks))


def code(text: str) -> str:
    """Return a text as code; an empty text stays empty."""
    return f"`{text}`" if text else ""


def anchor(heading: str) -> str:
    """Return the anchor that GitHub gives to a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def link(name: str) -> str:
    """Return a link to the heading of that name on the same page."""
    return f"[{name}](#{anchor(name)})"


def _cell(text: str) -> str:
    return text.replace("\n", " ").replace("|", "\\|")
