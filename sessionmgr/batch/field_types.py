"""What is wrong with the value of a job's field: what was expected, and what was given."""

from __future__ import annotations

import re
from typing import Final, cast

import msgspec
from msgspec import inspect

from sessionmgr.batch.job import Job
from sessionmgr.model import encode_json
from sessionmgr.model.duration import EXPECTED as DURATION, duration_of

SHOWN: Final = 60
"""Characters of a value that are shown."""
_SECRET: Final = frozenset({"env", "options"})
"""Fields whose values may be secrets: their types are told, and not what they are."""
_SPECIAL: Final = {"deadline": DURATION, "budget_usd": "dollars, more than 0"}
_DURATIONS: Final = ("deadline",)
_PATH: Final = re.compile(r" - at `\$\.(?P<field>\w+)")


def with_seconds(fields: dict[str, object]) -> dict[str, object]:
    """Return a job's fields with seconds in the place of durations that are written as text."""
    texts = [name for name in _DURATIONS if isinstance(fields.get(name), str)]
    seconds = {name: duration_of(fields[name]) for name in texts}
    return fields | {name: value for name, value in seconds.items() if value is not None}


def type_error(
    error: msgspec.ValidationError, fields: dict[str, object], of: type[msgspec.Struct] = Job
) -> tuple[str, str]:
    """Return which field of a struct has a wrong value, and what is wrong with it."""
    found = _PATH.search(str(error))
    name = found["field"] if found else ""
    if name not in fields:
        return "", str(error)
    value = fields[name]
    expected = _SPECIAL.get(name) or _expected(_type_of(name, of))
    if name == "env" and isinstance(value, dict):
        return name, f"expected {expected}, got {_wrong_variable(cast('dict[str, object]', value))}"
    return name, f"expected {expected}, got {kind_of(value) if name in _SECRET else shown(value)}"


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
            return "a text that is not empty" if least else "a text"
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType(ge=least):
            return "a whole number" if least is None else f"a whole number, {least} or more"
        case inspect.FloatType(gt=bound):
            return "a number" if bound is None else f"a number, more than {bound:g}"
        case inspect.VarTupleType() | inspect.ListType():
            return "a list of texts"
        case inspect.DictType(value_type=inspect.StrType()):
            return "an object of texts"
        case inspect.EnumType(cls=choices):
            return f"one of: {', '.join(str(each.value) for each in choices)}"
        case inspect.LiteralType(values=values):
            return f"one of: {', '.join(map(str, values))}"
        case _:
            return "an object"


def _wrong_variable(variables: dict[str, object]) -> str:
    name = next(name for name, value in variables.items() if not isinstance(value, str))
    return f"{kind_of(variables[name])} for {name}"


def shown(value: object) -> str:
    """Return a value as JSON, cut to what is worth reading, with its type."""
    text = encode_json(value).decode()  # type: ignore[arg-type]  # it was read from JSON
    text = text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"
    return text if value is None or isinstance(value, bool) else f"{text} ({kind_of(value)})"


def kind_of(value: object) -> str:
    """Name the type of a JSON value."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "a list"
        case _:
            return "an object"
