"""Reads a file of approval rules (TOML) and refuses invalid ones."""

from __future__ import annotations

import hashlib
import re
import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Final, cast

import msgspec

from sessionmgr.adapter.kit import (
    FileRefusedError,
    NotSimpleError,
    commands_of_line,
    read_bounded_bytes,
)
from sessionmgr.batch.errors import RulesInvalid
from sessionmgr.batch.rules import Rule, Rules
from sessionmgr.model import field_error


def read_rules(path: str | Path, *, sha256: str | None = None) -> Rules:
    """Read rules from a TOML file; with `sha256`, only if its hash matches.

    Args:
        path: The file.
        sha256: The expected hash of the file; by default any file is read.

    Raises:
        RulesInvalid: The file is invalid; the error says where and why.
    """
    try:
        data = read_bounded_bytes(Path(path), regular=False)
        if sha256 is not None and hashlib.sha256(data).hexdigest() != sha256:
            raise RulesInvalid(str(path), "it has changed since it was trusted")
        text = data.decode()
        found: dict[str, object] = tomllib.loads(text)
    except FileRefusedError as error:
        raise RulesInvalid(str(path), str(error).removeprefix(f"{path}: ")) from error
    except UnicodeDecodeError as error:
        raise RulesInvalid(str(path), "it is not UTF-8 text") from error
    except tomllib.TOMLDecodeError as error:
        raise RulesInvalid(str(path), f"invalid TOML: {error}") from error
    for name in found.keys() - {"rule"}:
        raise RulesInvalid(str(path), f"unknown table {name!r}; each rule begins with [[rule]]")
    rules = found.get("rule")
    if not isinstance(rules, list) or not rules:
        raise RulesInvalid(str(path), "it contains no rules; each begins with [[rule]]")
    lines = [number for number, line in enumerate(text.splitlines(), 1) if _HEAD.match(line)]
    return Rules(
        tuple(
            _parse_rule(each, f"{path}:{lines[number]}" if number < len(lines) else str(path))
            for number, each in enumerate(cast("list[object]", rules))
        )
    )


_HEAD: Final = re.compile(r"\s*\[\[\s*rule\s*\]\]")
_CONDITIONS: Final = ("tool", "path", "command", "cwd")


def _parse_rule(given: object, where: str) -> Rule:
    if isinstance(given, dict):
        known = Rule.__struct_fields__
        for name in cast("dict[str, object]", given):
            if name not in known:
                nearest = get_close_matches(name, known, n=1)
                hint = f"did you mean {nearest[0]!r}?" if nearest else f"known: {', '.join(known)}"
                raise RulesInvalid(where, f"unknown field {name!r}; {hint}")
    try:
        rule = msgspec.convert(given, Rule)
    except msgspec.ValidationError as error:
        fields = cast("dict[str, object]", given) if isinstance(given, dict) else {}
        field, what = field_error(error, fields, Rule)
        raise RulesInvalid(where, f"{field}: {what}" if field else what) from error
    if rule.allows and all(getattr(rule, name) is None for name in _CONDITIONS):
        raise RulesInvalid(where, 'it allows everything; if this is intended, add tool = "*"')
    if rule.command is not None:
        _require_plain_command(rule.command, where)
    return rule


def _require_plain_command(command: str, where: str) -> None:
    """Check that a rule's command is the beginning of one plain command."""
    try:
        found = commands_of_line(command)
    except NotSimpleError as error:
        why = f"command: {command!r} is not one plain command: {error}"
        raise RulesInvalid(where, why) from None
    if len(found) != 1 or not all(found[0].words) or not found[0].exact:
        why = "use the first words of one command, without patterns and operators"
        raise RulesInvalid(where, f"command: {command!r}: {why}")
