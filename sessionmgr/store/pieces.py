"""Redaction of a text that comes in pieces.

Where the pieces are cut does not matter: put together, what is passed on is what redaction makes of
the whole. So the end of a piece is held back for as long as it may be the beginning of a secret,
and no longer. What is held is shorter than the longest secret, or the longest beginning by which a
well-known key is known; a key that goes on without end is replaced as soon as it is known to be
one, and what follows of it is dropped.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from sessionmgr.store.key_shapes import (
    CONTEXT,
    FOOTER,
    HEADER,
    LONGEST_FOOTER,
    PRIVATE_KEY,
    SHAPES,
    Shape,
)
from sessionmgr.store.redaction import REDACTED

if TYPE_CHECKING:
    from sessionmgr.store.redaction import TextPatterns

_MORE: Final = {shape: re.compile(f"{shape.more}*") for shape in SHAPES if shape.more is not None}
_HEADER: Final = re.compile(HEADER)
_FOOTER: Final = re.compile(FOOTER)
_AT_FOOTER: Final = re.compile(rf"{FOOTER}\Z")


class Pieces:
    """One text on its way: what of it was passed on, and what is held back."""

    __slots__ = ("_before", "_held", "_inside")

    def __init__(self) -> None:
        self._before: str = ""
        """The last characters that were passed on, as they were: they tell where a key begins."""
        self._held: str = ""
        self._inside: Shape | None = None
        """The key that was replaced already, and goes on."""

    @property
    def held(self) -> int:
        """How many characters are held back."""
        return len(self._held)

    @property
    def is_plain(self) -> bool:
        """Whether nothing is held back, and nothing is being dropped."""
        return not self._held and self._inside is None

    def passes(self, text: str, patterns: TextPatterns) -> bool:
        """Say whether all of the text may be passed on as it is; if so, note that it is."""
        if self._held or self._inside is not None:
            return False
        whole = self._before + text
        if not patterns.is_clean(whole) or patterns.begun(whole, len(self._before)) < len(whole):
            return False
        self._before = whole[-CONTEXT:]
        return True

    def clean_part(self, text: str, patterns: TextPatterns) -> int:
        """Return how much of the text may be passed on as it is, while nothing is held back."""
        whole = self._before + text
        if not patterns.is_clean(whole):
            return 0
        return patterns.begun(whole, len(self._before)) - len(self._before)

    def passed(self, text: str) -> None:
        """Note that so much was passed on as it is."""
        self._before = (self._before + text)[-CONTEXT:]

    def add(self, text: str, patterns: TextPatterns) -> str:
        """Take the next piece, and return what may be passed on now."""
        text = self._held + text
        self._held = ""
        if self._inside is not None:
            text = self._go_on(text)
        if not text:
            return ""
        whole, start, made = self._before + text, len(self._before), list[str]()
        while True:
            found = patterns.pattern.search(whole, start)
            begun = patterns.begun(whole, start)
            if found is None or found.start() >= begun:
                break
            made += (whole[start : found.start()], REDACTED)
            start = found.end()
            if start == len(whole):
                self._inside = _unended(found)
                begun = start
                break
        made.append(whole[start:begun])
        self._held = whole[begun:]
        self._before = whole[max(0, begun - CONTEXT) : begun]
        if found is not None and self._inside is PRIVATE_KEY:
            self._before = _HEADER.sub("", found[0], count=1)[-LONGEST_FOOTER:]
        return "".join(made)

    def close(self, patterns: TextPatterns) -> str:
        """Return what is still held: it was not the beginning of a secret, for nothing follows."""
        held, self._held, self._inside = self._held, "", None
        whole, start, made = self._before + held, len(self._before), list[str]()
        self._before = ""
        while (found := patterns.pattern.search(whole, start)) is not None:
            made += (whole[start : found.start()], REDACTED)
            start = found.end()
        return "".join([*made, whole[start:]])

    def _go_on(self, text: str) -> str:
        """Drop what belongs to the key that was replaced; return what follows it."""
        inside = self._inside
        assert inside is not None
        if inside is PRIVATE_KEY:
            text, self._before = self._before + text, ""
            footer = _FOOTER.search(text)
            if footer is None:
                self._before = text[-LONGEST_FOOTER:]
                return ""
            end = footer.end()
        else:
            more = _MORE[inside].match(text)
            assert more is not None
            end = more.end()
        if end < len(text) or inside is PRIVATE_KEY:
            self._inside = None
        self._before = (self._before + text[:end])[-CONTEXT:]
        return text[end:]


def _unended(found: re.Match[str]) -> Shape | None:
    """Return the shape of a key that may go on after the end of a text."""
    if found.lastindex is None:
        return None  # the value of a variable
    shape = SHAPES[found.lastindex - 1]
    if shape is PRIVATE_KEY:
        return None if _AT_FOOTER.search(found[0]) else shape
    return shape if shape.more is not None else None
