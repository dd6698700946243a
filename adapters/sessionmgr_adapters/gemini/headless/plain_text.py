"""Plain text, as Gemini prints it piece by piece."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING, Final

from sessionmgr.wire import LineDecoder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.wire import Line

MAX_TEXT: Final = 16 * 1024 * 1024
"""Characters that are kept for the message at the end."""


class UnsplitDecoder(LineDecoder):
    """A decoder that does not split a read into lines: blank lines belong to the text."""

    def feed(self, data: bytes | bytearray) -> Sequence[Line]:
        """Return the read."""
        return [bytes(data)] if data else []

    def close(self) -> Sequence[Line]:
        """Return nothing: no data is held back."""
        return []


class PlainTextReader:
    """Reader of text in UTF-8 whose characters may be cut; invalid bytes are replaced."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pieces: list[str] = []
        self._size = 0

    def read(self, reads: Sequence[Line]) -> str:
        """Return the text of some reads."""
        text = "".join(self._decoder.decode(each) for each in reads if isinstance(each, bytes))
        if self._size < MAX_TEXT:
            self._pieces.append(text)
            self._size += len(text)
        return text

    @property
    def text(self) -> str:
        """The whole text, without the newlines at its end."""
        return "".join(self._pieces).rstrip("\n")
