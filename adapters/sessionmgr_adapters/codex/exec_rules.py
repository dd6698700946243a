"""The user's rules that let commands out of the sandbox, in every mode and without a question.

Codex reads them from files beside its configuration; its own terminal interface adds one for each
"do not ask again". `codex exec` can ignore them; an app-server cannot.

The files are written in Starlark. The part that matters here is a subset of Python: a sequence of
calls with literal arguments. Anything else in a file is assumed to allow something.
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
"""Functions that only declare where a program is, and allow nothing."""
_STRICT: Final = frozenset({"prompt", "forbidden", "deny"})
# Characters that Python may read as the end of a line, or ignore, and Starlark otherwise.
_ODD: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff]|\r(?!\n)")


def loose_rules(home: Path, cwd: Path) -> Path | None:
    """Return a file whose rules may allow something, of those that Codex may read in `cwd`.

    A rule without a decision allows, and so may anything that cannot be parsed. Whether Codex
    trusts a project, and so reads its rules, is not checked.
    """
    places = [home, SYSTEM_CONFIG_DIR, *(each / PROJECT for each in (cwd, *cwd.parents))]
    for place in places:
        try:
            with os.scandir(f"{place}/rules") as entries:
                files = sorted(each.path for each in entries if each.name.endswith(".rules"))
        except OSError:
            continue  # no such file, or Codex cannot read it either
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
    """Whether a statement does nothing but forbid a command or require a question."""
    match statement:
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.Expr(value=ast.Call(func=ast.Name(id=name), args=args, keywords=keywords)):
            given = [*args, *(each.value for each in keywords)]
            if not all(map(_is_literal_expression, given)) or any(
                each.arg is None for each in keywords
            ):
                return False
            decisions = [each.value for each in keywords if each.arg == "decision"]
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
