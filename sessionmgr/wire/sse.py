"""Server-sent events: the bytes of a `text/event-stream`, as WHATWG has it, to events.

Lines end with LF, CR or CRLF, also where a read ends between CR and LF; an empty line ends an
event. Data stays bytes, for whoever knows its type. Unlike a browser, which drops it, an event
that was not ended when the stream closed is reported, because it tells that a reply was cut.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec

from sessionmgr.wire.oversized import HEAD, LIMIT, OversizedFrame

_MOST_DIGITS: Final = 15  # of a time to wait; nobody means more


class ServerEvent(msgspec.Struct, frozen=True, gc=False):
    """An event. Its name is "message" unless the server gave another."""

    name: str
    data: bytes
    id: str
    """The last id that the server gave, with this event or before."""


class IncompleteEvent(msgspec.Struct, frozen=True, gc=False):
    """What had come of an event when the stream closed."""

    name: str
    data: bytes


SseItem: TypeAlias = ServerEvent | OversizedFrame


class ServerEventDecoder:
    """Finds the events in a stream of bytes; where the bytes are cut does not matter.

    An event whose lines have more than `limit` bytes in all is skipped to its end and stands in
    the result as one `Oversized`. Comments are skipped and count for nothing; a server sends
    them to show that it is alive, which the bytes themselves have shown.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        if limit < 1:
            raise ValueError(f"limit={limit}: an event has at least one byte")
        self._limit = limit
        # The unfinished event: its lines, their size, and its head once it is too long.
        self._lines: list[bytes] = []
        self._size = 0
        self._head: bytes | None = None
        # The unfinished line; of a comment the colon only, of an event too long nothing.
        self._held: bytearray = bytearray()
        self._line_size = 0
        # The stream's first bytes while they may be a byte order mark; None once that is decided.
        self._opening: bytes | None = b""
        self._after_cr = False
        self.last_id = ""
        """What a client sends as `Last-Event-ID` when it connects again."""
        self.retry: int | None = None
        """After how many milliseconds the server wants it to; None if it did not say."""

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
        """Return the event that the end of the stream has cut, if any: nothing more is to come."""
        if self._opening:  # too short for a byte order mark: text
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
        # However it was cut, its first min(HEAD, limit) bytes are here.
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
                    pass  # not known, or not understood: to be ignored
        return name.decode(errors="replace") or "message", b"\n".join(data) if data else None
