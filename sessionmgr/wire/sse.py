"""Server-sent events: decodes the bytes of a `text/event-stream` (WHATWG).

Lines end with LF, CR or CRLF, also where a read ends between CR and LF; an empty line ends an
event. Data stays bytes, which code that knows their type decodes. An event that is incomplete when
the stream closes is reported (a browser drops it), because it shows that a reply was cut.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec

from sessionmgr.wire.oversized import HEAD, LIMIT, OversizedFrame

_MOST_DIGITS: Final = 15  # of a reconnection time in milliseconds


class ServerEvent(msgspec.Struct, frozen=True, gc=False):
    """An event. Its name is "message" unless the server sets another."""

    name: str
    data: bytes
    id: str
    """The last id that the server sent, with this event or before."""


class IncompleteEvent(msgspec.Struct, frozen=True, gc=False):
    """The received part of an event that was incomplete when the stream closed."""

    name: str
    data: bytes


SseItem: TypeAlias = ServerEvent | OversizedFrame


class ServerEventDecoder:
    """Decoder from a stream of bytes to events, independent of where the bytes are cut.

    An event whose lines have more than `limit` bytes in all is skipped to its end; the result has
    one `OversizedFrame` in its place. Comments are skipped and do not count: servers send them to
    keep the connection alive.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        if limit < 1:
            raise ValueError(f"limit={limit}: must be at least 1")
        self._limit = limit
        # The unfinished event: its lines, their size, and its head once it is too long.
        self._lines: list[bytes] = []
        self._size = 0
        self._head: bytes | None = None
        # The unfinished line; of a comment only the colon, of an oversized event nothing.
        self._held: bytearray = bytearray()
        self._line_size = 0
        # The stream's first bytes while they may be a byte order mark; None once that is decided.
        self._opening: bytes | None = b""
        self._after_cr = False
        self.last_id = ""
        """The `Last-Event-ID` that a client sends when it reconnects."""
        self.retry: int | None = None
        """The server's reconnection time in milliseconds; None if it sent none."""

    def feed(self, data: bytes | bytearray) -> Sequence[SseItem]:
        """Return the events that `data` completes, in their order."""
        data = self._after_mark(bytes(data))
        if self._after_cr and data:
            data = data.removeprefix(b"\n")
            self._after_cr = False
        if not data:
            return []
        self._after_cr = data.endswith(b"\r")
        lines = data.splitlines()
        rest = b"" if data.endswith((b"\n", b"\r")) else lines.pop()
        found: list[SseItem] = []
        for line in lines:
            self._buffer(line)
            event = self._end_line()
            if event is not None:
                found.append(event)
        self._buffer(rest)
        return found

    def close(self) -> IncompleteEvent | OversizedFrame | None:
        """Return the event that the end of the stream cut, if any."""
        if self._opening:  # too short for a byte order mark, so it is text
            self._buffer(self._opening)
        self._opening = None
        if self._line_size:
            self._end_line()
        lines, size, head = self._lines, self._size, self._head
        self._lines, self._size, self._head = [], 0, None
        if head is not None:
            return OversizedFrame(size, head)
        if not lines:
            return None
        name, data = self._read(lines)
        return IncompleteEvent(name, data or b"")

    def _after_mark(self, data: bytes) -> bytes:
        """Return the bytes to decode now, without a byte order mark at the stream's start."""
        if self._opening is None:
            return data
        opening = self._opening + data
        if len(opening) < len(codecs.BOM_UTF8) and codecs.BOM_UTF8.startswith(opening):
            self._opening = opening
            return b""
        self._opening = None
        return opening.removeprefix(codecs.BOM_UTF8)

    def _buffer(self, piece: bytes) -> None:
        began, self._line_size = self._line_size == 0, self._line_size + len(piece)
        if self._held.startswith(b":"):
            return
        if began and piece.startswith(b":"):
            self._held += b":"
            return
        self._size += len(piece)
        if self._head is not None:
            return
        if self._size <= self._limit:
            self._held += piece
            return
        # Wherever the event was cut, its first min(HEAD, limit) bytes are here.
        text = b"\n".join([*self._lines, self._held + piece[:HEAD]])
        self._head = text[: min(HEAD, self._limit)]
        self._lines.clear()
        self._held.clear()

    def _end_line(self) -> SseItem | None:
        line, size = bytes(self._held), self._line_size
        self._held, self._line_size = bytearray(), 0
        if size == 0:
            return self._end_event()
        if self._head is None and not line.startswith(b":"):
            self._lines.append(line)
        return None

    def _end_event(self) -> SseItem | None:
        lines, size, head = self._lines, self._size, self._head
        self._lines, self._size, self._head = [], 0, None
        if head is not None:
            return OversizedFrame(size, head)
        name, data = self._read(lines)
        return None if data is None else ServerEvent(name, data, self.last_id)

    def _read(self, lines: list[bytes]) -> tuple[str, bytes | None]:
        name, data = b"", list[bytes]()
        for line in lines:
            field, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            match field:
                case b"data":
                    data.append(value)
                case b"event":
                    name = value
                case b"id" if b"\0" not in value:
                    self.last_id = value.decode(errors="replace")
                case b"retry" if value.isdigit() and len(value) <= _MOST_DIGITS:
                    self.retry = int(value)
                case _:
                    pass  # an unknown or invalid field is ignored
        return name.decode(errors="replace") or "message", b"\n".join(data) if data else None
