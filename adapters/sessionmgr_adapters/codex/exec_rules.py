"""Rules of the user's that let commands out of the sandbox, unasked and in every mode.

Codex reads them from files beside its configuration, where its own screen writes one for each
"do not ask again". An app-server cannot be told to leave them alone; `codex exec` can.

They are written in Starlark, which is a piece of Python as far as it matters: one call after the
other, of values that stand there as they are. Whatever else is in a file may allow anything.
"""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path
from typing import Final

from sessionmgr_adapters.codex.config import PROJECT, SYSTEM_CONFIG_DIR

_RULES: Final = frozenset({"prefix_rule", "network_rule"})
_NAMES: Final = frozenset({"host_executable"})
"""What is called to say where a program is, and allows nothing."""
_STRICT: Final = frozenset({"prompt", "forbidden", "deny"})
# Python may see the end of a line there, or nothing at all, and Starlark something else.
_ODD: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff]|\r(?!\n)")


def loose_rules(home: Path, cwd: Path) -> Path | None:
    """Return a file whose rules may allow something, of those that Codex may read in `cwd`.

    A rule that does not say what it decides allows, and so may whatever is not understood. Whether
    Codex trusts a project, and reads its rules, is not looked at.
    """
    places = [home, SYSTEM_CONFIG_DIR, *(each / PROJECT for each in (cwd, *cwd.parents))]
    for place in places:
        try:
            with os.scandir(f"{place}/rules") as entries:
                files = sorted(each.path for each in entries if each.name.endswith(".rules"))
        except OSError:
            continue  # there are none, or Codex cannot read them either
        for file in map(Path, files):
            if _allows(file):
                return file
    return None


def _allows(file: Path) -> bool:
    try:
        data = file.read_bytes()
    except OSError:
        return False  # Codex cannot read it either
    try:
        text = data.decode()
        body = ast.parse(text).body
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return True
    return _ODD.search(text) is not None or not all(map(_is_strict, body))


def _is_strict(statement: ast.stmt) -> bool:
    """Whether a statement does nothing but to forbid something, or to have it asked about."""
    match statement:
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.Expr(value=ast.Call(func=ast.Name(id=name), args=args, keywords=said)):
            given = [*args, *(each.value for each in said)]
            if not all(map(_is_literal_expression, given)) or any(
                each.arg is None for each in said
            ):
                return False
            decisions = [each.value for each in said if each.arg == "decision"]
            return name in _NAMES or (name in _RULES and _are_strict(decisions))
        case _:
            return False


def _are_strict(decisions: list[ast.expr]) -> bool:
    match decisions:
        case [ast.Constant(value=str(decision))]:
            return decision in _STRICT
        case _:
            return False


def _is_literal_expression(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return False
    return True
