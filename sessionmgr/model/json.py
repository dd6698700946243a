"""JSON as it is met in the wild: read by a ladder that never raises, written without loss.

Lone surrogates, bad UTF-8, NaN, numbers out of range, doubled keys and nesting that breaks a
parser all come out of real agents. None of them may end a run.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

if TYPE_CHECKING:
    from typing import TypeAlias

    Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
else:
    Json = Any  # msgspec cannot follow an alias that names itself

T = TypeVar("T")

# What the fast reader raises: MsgspecError (malformed, or not of the type), bad UTF-8 in a
# string, and nesting beyond what the interpreter's stack can hold.
_REFUSED: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_decode: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder().encode

# Integers beyond 64 bits are refused by most readers of JSON, ours among them.
_SMALLEST: Final = -(1 << 63)
_LARGEST: Final = (1 << 64) - 1


class Unreadable(msgspec.Struct, frozen=True):
    """Bytes that are no JSON, however kindly read."""

    text: str
    why: str


def parse_json(data: bytes | bytearray | str) -> Json | Unreadable:
    """Read `data`, as strictly as it can be read and as leniently as it must be."""
    try:
        found: Json = _decode(data)
    except _REFUSED as error:
        return _parse_kindly(data, str(error))
    return found


def parse_typed(data: bytes | bytearray, decoder: msgspec.json.Decoder[T]) -> T | Json | Unreadable:
    """Read `data` with `decoder`; what is not of its type comes as plain JSON."""
    try:
        return decoder.decode(data)
    except _REFUSED:
        return parse_json(data)


def encode_json(value: Json | msgspec.Struct) -> bytes:
    """Write `value`; what JSON cannot hold (half a surrogate pair, say) is replaced."""
    try:
        return _encode(value)
    except (UnicodeEncodeError, OverflowError):
        return _encode(clean(msgspec.to_builtins(value)))


def clean(value: Json) -> Json:
    """Replace in `value` what cannot be written as JSON that everybody reads.

    Raises:
        RecursionError: It is nested too deeply.
    """
    match value:
        case str():
            return _without_surrogates(value)
        case bool() | None:
            return value
        case int():
            return value if _SMALLEST <= value <= _LARGEST else str(value)
        case float():
            return value if math.isfinite(value) else None
        case list():
            return [clean(each) for each in value]
        case dict():
            return {_without_surrogates(key): clean(each) for key, each in value.items()}


def _parse_kindly(data: bytes | bytearray | str, why: str) -> Json | Unreadable:
    text = data if isinstance(data, str) else data.decode("utf-8", "replace")
    try:
        return clean(json.loads(text))
    except (ValueError, RecursionError):
        return Unreadable(_without_surrogates(text), why)


def _without_surrogates(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        # By way of UTF-16, a pair that was written as two halves becomes the one it meant.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
