"""Tables of the fields of structs, keyword arguments and enumerations."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec import UNSET, inspect

from sessionmgr.field_docs import field_docs
from sessionmgr.reference.markdown import code, link, table

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

HEADS = ("field", "type", "default", "meaning")


def field_table(of: type[msgspec.Struct], leave_out: Collection[str] = ()) -> str:
    """Return the table of a struct's fields, without those named in `leave_out`."""
    described = inspect.type_info(of)
    assert isinstance(described, inspect.StructType)
    texts = field_docs(of)
    rows = [
        (code(each.name), type_name(each.type), _default(each), texts.get(each.name, ""))
        for each in described.fields
        if each.name not in leave_out and not each.encode_name.startswith("~")
    ]
    return table(HEADS, rows)


def argument_table(of: type, *bases: type) -> str:
    """Return the table of the keyword arguments that a `TypedDict` names.

    A `TypedDict` does not know its bases at run time, so they are given here.
    """
    names = cast("Mapping[str, object]", of.__annotations__)
    texts = {name: text for each in (*bases, of) for name, text in field_docs(each).items()}
    return table(("argument", "meaning"), [(code(each), texts.get(each, "")) for each in names])


def member_table(of: type[StrEnum]) -> str:
    """Return the table of an enumeration's values."""
    texts = field_docs(of)
    return table(
        ("value", "meaning"), [(code(each.value), texts.get(each.name, "")) for each in of]
    )


def type_name(of: inspect.Type) -> str:
    """Return the name of a type, in terms of JSON."""
    match of:
        case inspect.StructType(cls=cls) | inspect.EnumType(cls=cls):
            return link(cls.__name__)
        case inspect.UnionType(types=types):
            names = (type_name(each) for each in types if not _is_unset(each))
            return " or ".join(dict.fromkeys(names))
        case inspect.DictType(value_type=inspect.AnyType()):
            return "object"
        case inspect.DictType(value_type=value):
            return f"object of {type_name(value)}"
        case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item):
            return f"list of {type_name(item)}"
        case inspect.LiteralType(values=values):
            return ", ".join(code(str(each)) for each in values)
        case _:
            return _plain_name(of)


def _plain_name(of: inspect.Type) -> str:
    match of:
        case inspect.StrType():
            return "string"
        case inspect.IntType():
            return "integer"
        case inspect.FloatType():
            return "number"
        case inspect.BoolType():
            return "boolean"
        case inspect.NoneType():
            return "null"
        case inspect.AnyType():
            return "any JSON"
        case _:
            return "Python object"


def _is_unset(of: inspect.Type) -> bool:
    return isinstance(of, inspect.CustomType) and of.cls is type(UNSET)


def _default(field: inspect.Field) -> str:
    if field.required:
        return "required"
    value: Any = field.default
    if value is msgspec.NODEFAULT and field.default_factory is msgspec.NODEFAULT:
        return "absent"  # UNSET
    if value is msgspec.NODEFAULT:
        value = field.default_factory()
    if isinstance(value, msgspec.Struct):
        return ""
    return code(msgspec.json.encode(value).decode())
