"""What is set on top of Codex's configuration: of all that is said, one table of tables.

Codex takes a name with dots for a path, and a table for itself; where both say something it has no
order among them. So it is never told both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sessionmgr.model import Json


def put_together(*overrides: Mapping[str, Json]) -> dict[str, Json]:
    """Return overrides as one table, in which the later ones win; names may be dotted."""
    table: dict[str, Json] = {}
    for each in overrides:
        for name, value in each.items():
            _add(table, _nested(name.split("."), value))
    return table


def found_in(table: Json, *path: str) -> Json:
    """Return what stands at a path; None if nothing does."""
    for name in path:
        table = table.get(name) if isinstance(table, dict) else None
    return table


def _nested(path: Sequence[str], value: Json) -> Json:
    return value if not path else {path[0]: _nested(path[1:], value)}


def _add(table: dict[str, Json], more: Json) -> None:
    """Add one table to another, and whatever tables are in them likewise."""
    for name, value in more.items() if isinstance(more, dict) else ():
        if isinstance(value, dict):
            inner = table.get(name)
            if not isinstance(inner, dict):
                inner = table[name] = {}
            _add(inner, value)
        else:
            table[name] = value
