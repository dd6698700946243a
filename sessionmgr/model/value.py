"""Base class of plain values: frozen, named fields, unknown fields refused.

Refusing unknown fields detects them at no cost. Readers of a foreign or newer log remove them with
`without_unknown` and carry them along (see `sessionmgr.model.event`).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec
from msgspec import inspect

if TYPE_CHECKING:
    from sessionmgr.model.json_codec import Json

V = TypeVar("V", bound=msgspec.Struct)


class Value(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A plain value that is part of an event or of a result."""


def without_unknown(value: Json, of: type[msgspec.Struct]) -> Json:
    """Return `value` without the fields that the struct `of` and the structs within it lack."""
    return _known_fields(value, _info(of))


def with_unknown(typed: Json, original: Json, of: type[msgspec.Struct]) -> Json:
    """Return `typed` with the fields of `original` that the struct `of` does not know."""
    return _merge_unknown(typed, original, _info(of))


@cache
def _info(of: type[msgspec.Struct]) -> inspect.Type:
    return inspect.type_info(of)  # takes milliseconds


@cache
def _fields(of: type[msgspec.Struct]) -> dict[str, inspect.Type]:
    info = _info(of)
    assert isinstance(info, inspect.StructType)
    return {field.encode_name: field.type for field in info.fields}


_TAG: Final = "type"


def _known_fields(value: Json, info: inspect.Type) -> Json:
    match value, _struct_or_items(info):
        case dict(), inspect.StructType(cls=cls):
            fields = _fields(cls)
            return {
                key: each if key == _TAG and key not in fields else _known_fields(each, fields[key])
                for key, each in value.items()
                if key in fields or key == _TAG
            }
        case list(), inspect.Type() as items:
            return [_known_fields(each, items) for each in value]
        case _:
            return value


def _merge_unknown(typed: Json, original: Json, info: inspect.Type) -> Json:
    match typed, original, _struct_or_items(info):
        case dict(), dict(), inspect.StructType(cls=cls):
            fields = _fields(cls)
            joined = {
                key: _merge_unknown(each, original[key], fields[key])
                if key in fields and key in original
                else each
                for key, each in typed.items()
            }
            unknown = {k: v for k, v in original.items() if k not in fields and k not in joined}
            return joined | unknown
        case list(), list(), inspect.Type() as items if len(typed) == len(original):
            return [
                _merge_unknown(new, old, items) for new, old in zip(typed, original, strict=True)
            ]
        case _:
            return typed


def _struct_or_items(info: inspect.Type) -> inspect.Type | None:
    """Find the struct, or the items of a sequence, within `X | None`."""
    match info:
        case inspect.StructType():
            return info
        case inspect.UnionType(types=types):
            found = [found for each in types if (found := _struct_or_items(each)) is not None]
            return found[0] if len(found) == 1 else None
        case inspect.ListType(item_type=items) | inspect.VarTupleType(item_type=items):
            return items
        case _:
            return None
