"""A line to a provider's frame, by a ladder that never fails.

Typed; typed once a kinder reader has mended what was wrong with the text; JSON of no known type,
which is kept as it is because providers add to their frames every month; malformed; noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias, TypeVar, cast

import msgspec

from sessionmgr.model.json import Json, Unreadable, encode_json, parse_json
from sessionmgr.wire.lines import Line
from sessionmgr.wire.noise import Malformed, Noise, unwrapped
from sessionmgr.wire.oversized import Oversized

T = TypeVar("T")


class Untyped(msgspec.Struct, frozen=True):
    """Well-formed JSON of another type than was asked for: a new frame, or a changed one."""

    value: Json
    why: str


NoFrame: TypeAlias = Untyped | Malformed | Noise | Oversized
"""What a line is if not a frame of a known type."""

_REFUSALS: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def read_frames(lines: Sequence[Line], decoder: msgspec.json.Decoder[T]) -> list[T | NoFrame]:
    """Return what each line of a read is; what is of the type costs no more than its decoding."""
    try:
        # Nearly always all of them are; where one is not, TypeError says that it was too long.
        return list(map(decoder.decode, cast("Sequence[bytes]", lines)))
    except (*_REFUSALS, TypeError):
        frames: list[T | NoFrame] = []
        for line in lines:
            frame = _read(line, decoder)
            frames.append(frame)
        return frames


def _read(line: Line, decoder: msgspec.json.Decoder[T]) -> T | NoFrame:
    if isinstance(line, Oversized):
        return line
    try:
        return decoder.decode(line)
    except _REFUSALS:
        return _read_kindly(line, decoder)


def _read_kindly(line: bytes, decoder: msgspec.json.Decoder[T]) -> T | Untyped | Malformed | Noise:
    frame = unwrapped(line)
    if frame is None:
        return Noise(line)
    value = parse_json(frame)
    if isinstance(value, Unreadable):
        return Malformed(frame, value.why)
    try:
        return decoder.decode(encode_json(value))
    except _REFUSALS as refusal:
        return Untyped(value, str(refusal))
