"""Strategies for structs, derived from the types of their fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec
from hypothesis import strategies as st
from msgspec import inspect

if TYPE_CHECKING:
    from collections.abc import Collection

    from hypothesis.strategies import SearchStrategy

    from sessionmgr.model import Json

S = TypeVar("S", bound=msgspec.Struct)

LARGE = 10**6


def json_values() -> SearchStrategy[Json]:
    """Return a strategy for small JSON values of every kind."""
    return st.recursive(
        st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
        max_leaves=6,
    )


def structs(
    of: type[S], *, without: Collection[str] = (), **fixed: SearchStrategy[object]
) -> SearchStrategy[S]:
    """Return a strategy for a struct; `fixed` sets strategies of fields, `without` omits fields.

    Raises:
        TypeError: There is no strategy for the type of a field.
    """
    info = inspect.type_info(of)
    assert isinstance(info, inspect.StructType)
    fields = {
        field.name: _values(field.type)
        for field in info.fields
        if field.name not in without and field.name not in fixed
    }
    return st.builds(of, **fields, **fixed)


def _values(kind: inspect.Type) -> SearchStrategy[object]:
    match kind:
        case inspect.AnyType():
            return json_values().map(lambda made: made)
        case inspect.NoneType():
            return st.none()
        case inspect.LiteralType(values=choices):
            return st.sampled_from(choices)
        case inspect.EnumType(cls=cls):
            return st.sampled_from(list(cls))
        case inspect.UnionType(types=types):
            known = [each for each in types if not isinstance(each, inspect.CustomType)]
            return st.one_of([_values(each) for each in known])
        case inspect.VarTupleType(item_type=items):
            return st.lists(_values(items), max_size=2).map(tuple)
        case inspect.DictType(value_type=items):
            return st.dictionaries(st.text(max_size=4), _values(items), max_size=2)
        case inspect.StructType(cls=cls):
            return structs(cls)
        case _:
            return _scalars(kind)


def _scalars(kind: inspect.Type) -> SearchStrategy[object]:
    match kind:
        case inspect.StrType():
            return st.text(max_size=6)
        case inspect.BoolType():
            return st.booleans()
        case inspect.IntType():
            return st.integers(0, LARGE)
        case inspect.FloatType():
            return st.floats(0, LARGE)
        case _:
            raise TypeError(f"no strategy for {kind}")
