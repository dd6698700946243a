"""Decoders from bytes to lines, and from lines to a provider's frames; one read is one batch.

The line decoder takes bytes in pieces of any size and returns whole lines. Only new bytes can hold
a newline, so the unfinished line is never scanned again, and each byte is copied a fixed number of
times however small the reads are.

Decoding a frame never fails. A line is, in this order: a frame of the decoder's type; the same
after a lenient parser has repaired the text; JSON of unknown type, which is kept because providers
add to their frames every month; malformed; noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias, TypeVar, cast

import msgspec

from sessionmgr.model import Json, UnreadableJson, encode_json, parse_json
from sessionmgr.wire.noise import MalformedFrame, NoiseLine, strip_wrapping
from sessionmgr.wire.oversized import HEAD, LIMIT, OversizedFrame

T = TypeVar("T")

Line: TypeAlias = bytes | OversizedFrame
"""A line without its newline, or the remains of one that was too long."""


class UntypedFrame(msgspec.Struct, frozen=True):
    """Well-formed JSON of another type than expected: a new frame, or a changed one."""

    value: Json
    why: str


NoFrame: TypeAlias = UntypedFrame | MalformedFrame | NoiseLine | OversizedFrame
"""A line that is not a frame of a known type."""

_REFUSALS: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class LineDecoder:
    r"""Decoder from a stream of bytes to lines, independent of where the bytes are cut.

    A line ends with LF or CRLF. Lines of white space are skipped. A line of more than `limit` bytes
    is skipped to its end; the result has one `OversizedFrame` in its place.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        if limit < 1:
            raise ValueError(f"limit={limit}: must be at least 1")
        self._limit = limit
        # The unfinished line; of one that is too long, only its head.
        self._held = bytearray()
        self._seen = 0

    def feed(self, data: bytes | bytearray) -> Sequence[Line]:
        """Return the lines that `data` completes, in their order."""
        lines = bytes(data).split(b"\n")
        rest = lines.pop()
        first: Line | None = None
        if lines and self._seen:
            self._buffer(lines.pop(0))
            first = self._end()
        if len(data) > self._limit:
            found = self._classify_all(lines)
        else:
            found = self._whole(lines, carriage_returns=b"\r" in data)
        self._buffer(rest)
        return found if first is None else [first, *found]

    def close(self) -> Sequence[Line]:
        """Return the last line, if it has no newline; call this at the end of the stream."""
        last = self._end()
        return [] if last is None else [last]

    def _buffer(self, piece: bytes) -> None:
        before, self._seen = self._seen, self._seen + len(piece)
        if self._seen <= self._limit:
            self._held += piece
        elif before <= self._limit:
            # Wherever the line was cut, its first min(HEAD, limit) bytes are here.
            head = min(HEAD, self._limit)
            self._held = self._held[:head] + piece[:head]
            del self._held[head:]

    def _end(self) -> Line | None:
        held, seen = bytes(self._held), self._seen
        self._held, self._seen = bytearray(), 0
        return self._classify(held, seen)

    def _classify_all(self, lines: list[bytes]) -> Sequence[Line]:
        judged = (self._classify(line, len(line)) for line in lines)
        return [line for line in judged if line is not None]

    def _classify(self, line: bytes, seen: int) -> Line | None:
        if seen > self._limit:
            return OversizedFrame(seen, line[: min(HEAD, self._limit)])
        line = line.removesuffix(b"\r")
        return line if line.strip() else None

    @staticmethod
    def _whole(lines: list[bytes], *, carriage_returns: bool) -> Sequence[Line]:
        # Fast path: no line can be too long.
        if carriage_returns:
            lines = [line.removesuffix(b"\r") for line in lines]
        if not all(lines) or any(map(bytes.isspace, lines)):
            lines = [line for line in lines if line.strip()]
        return lines


def decode_frames(
    lines: Sequence[Line],
    decoder: msgspec.json.Decoder[T],
    mend: Callable[[UntypedFrame], T | UntypedFrame] | None = None,
) -> list[T | NoFrame]:
    """Decode each line of a read; a frame of the expected type costs no more than its decoding.

    `mend` decodes frames of which only a part has the type; without it they stay untyped.
    """
    try:
        # Fast path: nearly always all lines decode. An `OversizedFrame` raises TypeError.
        return list(map(decoder.decode, cast("Sequence[bytes]", lines)))
    except (*_REFUSALS, TypeError):
        frames: list[T | NoFrame] = []
        for line in lines:
            frame = _decode_line(line, decoder)
            if mend is not None and isinstance(frame, UntypedFrame):
                frame = mend(frame)
            frames.append(frame)
        return frames


def _decode_line(line: Line, decoder: msgspec.json.Decoder[T]) -> T | NoFrame:
    if isinstance(line, OversizedFrame):
        return line
    try:
        return decoder.decode(line)
    except _REFUSALS:
        return _decode_leniently(line, decoder)


def _decode_leniently(
    line: bytes, decoder: msgspec.json.Decoder[T]
) -> T | UntypedFrame | MalformedFrame | NoiseLine:
    frame = strip_wrapping(line)
    if frame is None:
        return NoiseLine(line)
    value = parse_json(frame)
    if isinstance(value, UnreadableJson):
        return MalformedFrame(frame, value.why)
    try:
        return decoder.decode(encode_json(value))
    except _REFUSALS as refusal:
        return UntypedFrame(value, str(refusal))
