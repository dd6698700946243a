"""Field texts: the string literal that follows a field in the source of its class.

The reference and `sessionmgr schema` print these texts, so each is written once, beside its field.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from msgspec import inspect as info

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import ModuleType


def field_docs(of: type) -> dict[str, str]:
    """Return the texts of a class's fields, inherited ones included, by the fields' names.

    A field is an annotated name or, in an enumeration, an assigned one. Each text is one line.
    """
    texts: dict[str, str] = {}
    for each in reversed(inspect.getmro(of)):
        module = sys.modules.get(each.__module__)
        if module is not None and each.__module__.startswith("sessionmgr"):
            texts |= _texts_of_module(module).get(each.__qualname__, {})
    return texts


def summary(of: type) -> str:
    """Return the first paragraph of a class's docstring, as one line."""
    paragraph = (inspect.getdoc(of) or "").partition("\n\n")[0]
    return " ".join(paragraph.split())


def describe(schema: Mapping[str, Any], *types: Any) -> None:
    """Add the texts of fields to a JSON Schema, as descriptions; `types` are its source types."""
    named = {each.__name__: each for each in structs_in(*types)}
    definitions = cast("dict[str, dict[str, Any]]", schema.get("$defs", {}))
    for name, definition in definitions.items():
        if name in named:
            _add_descriptions(definition, named[name])
    if len(types) == 1 and "properties" in schema:
        _add_descriptions(schema, types[0])


def structs_in(*types: Any) -> list[type]:
    """Return the structs and enumerations in these types and their fields, outermost first."""
    found: dict[type, None] = {}
    todo = [info.type_info(each) for each in types]
    while todo:
        match todo.pop(0):
            case info.StructType(cls=cls, fields=fields) if cls not in found:
                found[cls] = None
                todo += [each.type for each in fields]
            case info.EnumType(cls=cls):
                found[cls] = None
            case info.UnionType(types=inner):
                todo += inner
            case info.DictType(value_type=inner):
                todo.append(inner)
            case info.VarTupleType(item_type=inner) | info.ListType(item_type=inner):
                todo.append(inner)
            case _:
                pass
    return list(found)


def _add_descriptions(definition: Mapping[str, Any], of: type) -> None:
    texts = field_docs(of)
    for name, field in cast("dict[str, dict[str, Any]]", definition.get("properties", {})).items():
        if name in texts:
            field.setdefault("description", texts[name])


@cache
def _texts_of_module(module: ModuleType) -> dict[str, dict[str, str]]:
    try:
        source = inspect.getsource(module)
    except (OSError, TypeError):  # an installation without sources has no texts
        return {}
    return {name: dict(_texts(node)) for name, node in _classes(ast.parse(source).body, "")}


def _classes(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, ast.ClassDef]]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield f"{prefix}{node.name}", node
            yield from _classes(node.body, f"{prefix}{node.name}.")


def _texts(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, after in zip(node.body, node.body[1:], strict=False):
        match field, after:
            case (
                ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                yield name, re.sub(r"\s+", " ", text).strip()
            case _:
                pass
