"""Tail of a child's stderr."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sessionmgr.wire import strip_escapes

if TYPE_CHECKING:
    from collections.abc import Callable

KEPT: Final = 64 * 1024
BEFORE: Final = 16 * 1024
"""Bytes that are kept before the tail: secrets are shorter."""
SHORT: Final = 200
"""Characters: as many as the text of a failure shows."""


class StderrTail:
    """Last `limit` bytes of a stream, and the stream's total size.

    It also keeps some bytes before them: a cut must not hide the beginning of a secret,
    whose end redaction would not recognize.
    """

    def __init__(self, limit: int = KEPT) -> None:
        if limit < 1:
            raise ValueError(f"limit={limit}: a tail needs at least one byte")
        self._limit = limit
        self._held = bytearray()
        self.bytes_seen = 0

    def feed(self, data: bytes | bytearray) -> None:
        """Append data; the oldest bytes beyond the limit are dropped."""
        most = self._limit + min(self._limit, BEFORE)
        self.bytes_seen += len(data)
        self._held += data[-most:]
        # Cut only when the size has doubled: each byte is moved once at most.
        if len(self._held) >= 2 * most:
            del self._held[:-most]

    def text(self, redact: Callable[[str], str] | None = None) -> str:
        """Return the tail without escape sequences; invalid UTF-8 is replaced.

        `redact` removes secrets from a text; it receives the text before it is cut.
        """
        if redact is None or self.bytes_seen <= self._limit:
            kept = self._text(self._limit)
            return kept if redact is None else redact(kept)
        whole = redact(self._text(len(self._held)))
        encoded = whole.encode()
        if len(encoded) > self._limit:
            return _from_a_character(encoded[-self._limit :]).decode(errors="replace")
        # The text became so short that its first bytes remain, which may be the end of a secret.
        return whole if self.bytes_seen <= len(self._held) else whole.partition("\n")[2]

    def _text(self, most: int) -> str:
        kept = bytes(self._held[-most:])
        if self.bytes_seen > len(kept):
            kept = _from_a_character(kept)
        return strip_escapes(kept).decode(errors="replace")

    def short(self, most: int = SHORT) -> str:
        """Return the text's end, at most `most` characters, from the start of a line if possible.

        Otherwise it begins at a word: part of a word may be part of a secret that redaction would
        not recognize. Surrounding white space and unprintable characters are removed.
        """
        shown = "".join(each for each in self.text() if each.isprintable() or each in "\n\t")
        text = shown.strip()
        if len(text) <= most:
            return text
        end = text[-most:]
        if text[-most - 1] == "\n":
            return end.strip()
        _, _, lines = end.partition("\n")
        is_whole = text[-most - 1].isspace() or end[0].isspace()
        words = end if is_whole else end.partition(" ")[2]
        return lines.strip() or words.strip() or end.strip()


def _from_a_character(data: bytes) -> bytes:
    # The cut may have left the last bytes of a character at the start.
    for start in range(min(4, len(data))):
        if data[start] & 0xC0 != 0x80:
            return data[start:]
    return data
