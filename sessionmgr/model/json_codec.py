"""JSON codec for real-world input: reading never raises, writing loses nothing that JSON can hold.

Lone surrogates, bad UTF-8, NaN, numbers out of range, duplicate keys and nesting that breaks a
parser all come from real agents. None of them may end a run. So reading tries a strict parser
first and more lenient ones after it.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import msgspec

if TYPE_CHECKING:
    from typing import TypeAlias

    Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
else:
    Json = Any  # msgspec cannot follow a recursive alias

T = TypeVar("T")

# Exceptions of the fast parser: MsgspecError (malformed, or not of the type), bad UTF-8 in a
# string, and nesting beyond the interpreter's stack.
_REFUSED: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_decode: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder().encode

# Most JSON parsers, ours among them, reject integers beyond 64 bits.
_SMALLEST: Final = -(1 << 63)
_LARGEST: Final = (1 << 64) - 1


class UntypedJson(msgspec.Struct, frozen=True):
    """JSON that does not have the expected type."""

    value: Json
    why: str


class UnreadableJson(msgspec.Struct, frozen=True):
    """Bytes that are not JSON even for the lenient parser."""

    text: str
    why: str


def parse_json(data: bytes | bytearray | str) -> Json | UnreadableJson:
    """Parse `data`, strictly if possible, leniently otherwise."""
    try:
        found: Json = _decode(data)
    except _REFUSED as error:
        return _parse_leniently(data, str(error))
    return found


def parse_typed(
    data: bytes | bytearray, decoder: msgspec.json.Decoder[T]
) -> T | UntypedJson | UnreadableJson:
    """Parse `data` with `decoder`; JSON of another type is returned as `UntypedJson`."""
    try:
        return decoder.decode(data)
    except _REFUSED as error:
        found = parse_json(data)
        return found if isinstance(found, UnreadableJson) else UntypedJson(found, str(error))


def encode_json(value: Json | msgspec.Struct) -> bytes:
    """Encode `value`; what JSON cannot hold (such as half a surrogate pair) is replaced."""
    try:
        return _encode(value)
    except (UnicodeEncodeError, OverflowError):
        return _encode(_clean(msgspec.to_builtins(value)))


def _parse_leniently(data: bytes | bytearray | str, why: str) -> Json | UnreadableJson:
    text = data if isinstance(data, str) else data.decode("utf-8", "replace")
    try:
        return _clean(json.loads(text.removeprefix("\ufeff"), strict=False))
    except (ValueError, RecursionError):
        return UnreadableJson(_without_surrogates(text), why)


def _without_surrogates(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        # A round trip through UTF-16 joins a pair that was written as two halves.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _clean(value: object) -> Json:
    """Replace, in parsed data or data to be written, what other JSON parsers reject."""
    match value:
        case str():
            return _without_surrogates(value)
        case int() if not _SMALLEST <= value <= _LARGEST:
            return str(value)
        case float() if not math.isfinite(value):
            return None
        case bool() | int() | float():
            return value
        case list() | tuple():
            return [_clean(each) for each in cast("list[object]", value)]
        case dict():
            pairs = cast("dict[str, object]", value).items()
            return {_without_surrogates(key): _clean(each) for key, each in pairs}
        case _:
            return None
