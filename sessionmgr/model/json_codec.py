"""JSON as it is met in the wild: read by a ladder that never raises, written without loss.

Lone surrogates, bad UTF-8, NaN, numbers out of range, doubled keys and nesting that breaks a
parser all come out of real agents. None of them may end a run.
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


class UntypedJson(msgspec.Struct, frozen=True):
    """JSON that is not of the type which was expected."""

    value: Json
    why: str


class UnreadableJson(msgspec.Struct, frozen=True):
    """Bytes that are no JSON, however kindly read."""

    text: str
    why: str


def parse_json(data: bytes | bytearray | str) -> Json | UnreadableJson:
    """Read `data`, as strictly as it can be read and as leniently as it must be."""
    try:
        found: Json = _decode(data)
    except _REFUSED as error:
        return _parse_leniently(data, str(error))
    return found


def parse_typed(
    data: bytes | bytearray, decoder: msgspec.json.Decoder[T]
) -> T | UntypedJson | UnreadableJson:
    """Read `data` with `decoder`; JSON that is not of its type comes untyped."""
    try:
        return decoder.decode(data)
    except _REFUSED as error:
        found = parse_json(data)
        return found if isinstance(found, UnreadableJson) else UntypedJson(found, str(error))


def encode_json(value: Json | msgspec.Struct) -> bytes:
    """Write `value`; what JSON cannot hold (half a surrogate pair, say) is replaced."""
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
        # By way of UTF-16, a pair that was written as two halves becomes the one it meant.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _clean(value: object) -> Json:
    """Replace in what was read, or is to be written, what not everybody's JSON can hold."""
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
