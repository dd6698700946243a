"""Redaction of a text that arrives in pieces.

The cuts between pieces do not matter: the concatenated output equals the redaction of the whole
text. The end of a piece is held back exactly as long as it may be the beginning of a secret. The
held text is shorter than the longest secret or the longest recognizable beginning of a well-known
key. An endless key is replaced as soon as it is recognized, and the rest of it is dropped.
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
    """One text in transit: the part passed on, and the part held back."""

    __slots__ = ("_before", "_held", "_inside")

    def __init__(self) -> None:
        self._before: str = ""
        """The last characters passed on, unredacted: they determine where a key may begin."""
        self._held: str = ""
        self._inside: Shape | None = None
        """The key that was replaced and may continue."""

    @property
    def held(self) -> int:
        """The number of characters held back."""
        return len(self._held)

    @property
    def is_plain(self) -> bool:
        """Whether nothing is held back or being dropped."""
        return not self._held and self._inside is None

    def passes(self, text: str, patterns: TextPatterns) -> bool:
        """Return whether the whole text may be passed on unchanged; if so, record that."""
        if self._held or self._inside is not None:
            return False
        whole = self._before + text
        if not patterns.is_clean(whole) or patterns.begun(whole, len(self._before)) < len(whole):
            return False
        self._before = whole[-CONTEXT:]
        return True

    def clean_part(self, text: str, patterns: TextPatterns) -> int:
        """Return how much of the text may be passed on unchanged while nothing is held back."""
        whole = self._before + text
        if not patterns.is_clean(whole):
            return 0
        return patterns.begun(whole, len(self._before)) - len(self._before)

    def passed(self, text: str) -> None:
        """Record that so much was passed on unchanged."""
        self._before = (self._before + text)[-CONTEXT:]

    def add(self, text: str, patterns: TextPatterns) -> str:
        """Take the next piece, and return the text that may be passed on now."""
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
        """Return the held text: nothing follows, so it is not the beginning of a secret."""
        held, self._held, self._inside = self._held, "", None
        whole, start, made = self._before + held, len(self._before), list[str]()
        self._before = ""
        while (found := patterns.pattern.search(whole, start)) is not None:
            made += (whole[start : found.start()], REDACTED)
            start = found.end()
        return "".join([*made, whole[start:]])

    def _go_on(self, text: str) -> str:
        """Drop the rest of the replaced key; return the text after it."""
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
    """Return the shape of a key that may continue after the end of a text."""
    if found.lastindex is None:
        return None  # the value of a variable
    shape = SHAPES[found.lastindex - 1]
    if shape is PRIVATE_KEY:
        return None if _AT_FOOTER.search(found[0]) else shape
    return shape if shape.more is not None else None
