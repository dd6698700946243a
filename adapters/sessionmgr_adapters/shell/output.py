"""What a command says: text as it comes, and as much of it as is kept."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING, Final

from sessionmgr.wire.lines import LineDecoder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.wire.lines import Line

KEPT: Final = 4 * 1024 * 1024
"""Bytes of a stream that are told. The command may say more; how much more is told as well."""


class Pieces(LineDecoder):
    """No lines: what was read, as it was read."""

    def feed(self, data: bytes | bytearray) -> Sequence[Line]:
        """Return the piece."""
        return [bytes(data)]

    def close(self) -> Sequence[Line]:
        """Return nothing: nothing is held back."""
        return []


class Output:
    """One stream. Characters that were cut come whole; what is no UTF-8 is replaced."""

    def __init__(self, limit: int = KEPT) -> None:
        self._limit = limit
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._texts: list[str] = []
        self._taken = 0
        self.left_out = 0
        """Bytes that came when as much as may be had been kept."""

    def take(self, data: bytes) -> str:
        """Return the text that is new."""
        kept = data[: max(0, self._limit - self._taken)]
        self._taken += len(kept)
        self.left_out += len(data) - len(kept)
        return self._add(self._decoder.decode(kept))

    def close(self) -> str:
        """Return what a cut character at the end comes to."""
        return self._add(self._decoder.decode(b"", final=True))

    def text(self) -> str:
        """Return all that was kept."""
        return "".join(self._texts)

    def _add(self, text: str) -> str:
        if text:
            self._texts.append(text)
        return text
