"""TOML files, and the line numbers of their keys."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Final

from sessionmgr.cli.errors import ConfigurationInvalid

if TYPE_CHECKING:
    from pathlib import Path

_HEADER: Final = re.compile(r"\s*\[\[?\s*([^]]*?)\s*\]")
_PART: Final = r"(?:[\w-]+|\"[^\"]*\"|'[^']*')"
_KEY: Final = re.compile(rf"\s*({_PART}(?:\s*\.\s*{_PART})*)\s*=")

_PROVIDER_TWICE: Final = re.compile(r"^\s*provider\s*=", re.MULTILINE)


def read_toml(path: Path, data: bytes) -> tuple[str, dict[str, object]]:
    """Return the text and the parsed contents of a file with these bytes.

    Raises:
        ConfigurationInvalid: The TOML is invalid; the error names the line.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        number = data[: error.start].count(b"\n") + 1
        raise ConfigurationInvalid(f"{path}:{number}", "invalid TOML: not UTF-8 text") from None
    try:
        return text, tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"line (\d+), column", str(error))
        line = found[1] if found else str(text.count("\n") + 1)
        why = str(error).partition(" (at ")[0]
        if why.startswith("Cannot") and _PROVIDER_TWICE.search(text):
            why += '; beside [provider.NAME], write provider.default = "NAME"'
        raise ConfigurationInvalid(f"{path}:{line}", f"invalid TOML: {why}") from None


def line_of(text: str, key: tuple[str, ...]) -> int:
    """Return the line number where `key` is set, or else of its nearest parent table."""
    table: tuple[str, ...] = ()
    nearest, found = 0, 1
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            table = here = _parts(header[1])
        elif entry := _KEY.match(line):
            here = table + _parts(entry[1])
        else:
            continue
        shared = _shared(here, key)
        if shared > nearest:
            nearest, found = shared, number
    return found


def _shared(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    pairs = list(zip(one, other, strict=False))
    return next((n for n, (a, b) in enumerate(pairs) if a != b), len(pairs))


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in re.findall(_PART, dotted))
