"""Descriptions of a wrong field value: expected and actual."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final, cast

import msgspec
from msgspec import inspect

from sessionmgr.model.json_codec import Json, encode_json

SHOWN: Final = 60
"""Maximum number of characters of a value in a message."""
_PATH: Final = re.compile(r" - at `\$(\.(?P<field>\w+))?.*`$")


def field_error(
    error: msgspec.ValidationError,
    fields: Mapping[str, object],
    of: type[msgspec.Struct],
    *,
    expected: Mapping[str, str] | None = None,
    public: Collection[str] = (),
) -> tuple[str, str]:
    """Return which field has a wrong value, and why.

    `expected` overrides the description of some fields. An object's values may be secrets: the
    message gives their types only, unless the field is `public`.
    """
    found = _PATH.search(str(error))
    name = (found["field"] if found else None) or ""
    if name not in fields:
        return name, _PATH.sub("", str(error))  # the struct's own message
    value, kind = fields[name], _type_of(name, of)
    wanted = (expected or {}).get(name) or _expected(kind)
    if wanted == OBJECT_OF_TEXTS:
        return name, f"expected {wanted}, got {_describe_non_texts(value)}"
    is_secret = wanted == OBJECT and name not in public
    return (
        name,
        f"expected {wanted}, got {json_type_name(value) if is_secret else describe_value(value)}",
    )


OBJECT: Final = "an object"
OBJECT_OF_TEXTS: Final = "an object of strings"


def _type_of(name: str, of: type[msgspec.Struct]) -> inspect.Type:
    (struct,) = inspect.multi_type_info([of])
    assert isinstance(struct, inspect.StructType)
    return next(field.type for field in struct.fields if field.encode_name == name)


def _expected(of: inspect.Type) -> str:
    match of:
        case inspect.UnionType(types=types):
            return " or ".join(
                _expected(each) for each in types if not isinstance(each, inspect.NoneType)
            )
        case inspect.StrType(min_length=least):
            return "a string that is not empty" if least else "a string"
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType(ge=least):
            return "a whole number" if least is None else f"a whole number, {least} or more"
        case inspect.FloatType(gt=bound):
            return "a number" if bound is None else f"a number, more than {bound:g}"
        case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item):
            return "a list of strings" if isinstance(item, inspect.StrType) else "a list"
        case inspect.DictType(value_type=inspect.StrType()):
            return OBJECT_OF_TEXTS
        case inspect.EnumType(cls=choices):
            return f"one of: {', '.join(str(each.value) for each in choices)}"
        case inspect.LiteralType(values=values):
            return f"one of: {', '.join(map(str, values))}"
        case inspect.DictType():
            return OBJECT
        case _:
            return "another value"


def _describe_non_texts(value: object) -> str:
    """Describe the actual value where an object of texts, or a text in one, is expected."""
    if not isinstance(value, Mapping):
        return json_type_name(value)
    entries = cast("Mapping[str, object]", value)
    name = next(name for name, each in entries.items() if not isinstance(each, str))
    return f"{json_type_name(entries[name])} for {name}"


def describe_value(value: object) -> str:
    """Return a value as JSON, cut to a readable length, with its type."""
    try:
        text = encode_json(cast("Json", value)).decode()
    except TypeError:  # the value does not come from JSON
        text = repr(value)
    text = text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"
    return text if value is None or isinstance(value, bool) else f"{text} ({json_type_name(value)})"


def json_type_name(value: object) -> str:
    """Return the name of a JSON value's type."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list() | tuple():
            return "a list"
        case _:
            return "an object"
