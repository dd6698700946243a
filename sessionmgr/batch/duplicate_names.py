"""Detects duplicate names in a JSON object, of which a parser keeps only one."""

from __future__ import annotations

import json
from typing import Final, cast

_WIDTH: Final = 40
_SECRET: Final = ("env.", "options.")
"""Fields whose values may be secrets and are not shown."""


def find_duplicate_names(data: bytes | str) -> list[tuple[str, str]]:
    """Return each duplicate name in an object of a valid document, and its problem.

    A nested name is given with its path: `env.PATH`.
    """
    found: list[tuple[str, str]] = []
    document: object = json.loads(
        data,
        object_pairs_hook=_Pairs,
        parse_int=str,  # Python refuses to convert very long numbers
        parse_float=str,
    )
    _search(document, "", found)
    return found


class _Pairs(list[tuple[str, object]]):
    """An object's names and values in file order."""


def _search(value: object, path: str, found: list[tuple[str, str]]) -> None:
    if isinstance(value, _Pairs):
        said: dict[str, list[object]] = {}
        for name, inner in value:
            said.setdefault(name, []).append(inner)
        for name, inners in said.items():
            where = f"{path}.{name}" if path else name
            if len(inners) > 1:
                values = " and ".join(_short(each) for each in inners)
                shown = "" if where.startswith(_SECRET) else f" ({values})"
                found.append((where, f"it occurs {len(inners)} times{shown}; keep one"))
            for each in inners:
                _search(each, where, found)
    elif isinstance(value, list):
        for number, each in enumerate(cast("list[object]", value)):
            _search(each, f"{path}[{number}]", found)


def _short(value: object) -> str:
    if isinstance(value, _Pairs):
        return "{…}"
    if isinstance(value, list):
        return "[…]"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"
