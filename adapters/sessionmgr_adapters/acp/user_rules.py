"""Files in which a user of an agent allows tools for good; a plan with them would not be one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class RuleFiles(msgspec.Struct, frozen=True):
    """Files of an agent, and what in them allows something."""

    pattern: str
    """Their paths below the directory of the first variable that is set."""
    places: tuple[tuple[str, str], ...]
    """Variables that name a directory, each with the path from there."""
    allows: str
    """A regular expression that is found in a file that allows something."""


_CODEX_HOMES: Final = (("CODEX_HOME", ""), ("HOME", ".codex"))
CODEX_RULES: Final = RuleFiles(
    "rules/*.rules",
    _CODEX_HOMES,
    # Any line but an empty one, a comment, and a rule with another decision.
    r"^(?!\s*(#.*)?$)(?!prefix_rule\(pattern=\[[^\]]*\], "
    r'decision="(prompt|forbidden|deny)"\)\s*$)',
)
_GEMINI_HOMES: Final = (("GEMINI_CLI_HOME", ".gemini"), ("HOME", ".gemini"))
_GEMINI_SETTINGS: Final = r'"tools"\s*:\s*\{[^}]*"allowed"\s*:\s*\[\s*"|"trust"\s*:\s*true'
GEMINI_RULES: Final = (
    RuleFiles("policies/*.toml", _GEMINI_HOMES, r"""decision\s*=\s*["']allow"""),
    RuleFiles("settings.json", _GEMINI_HOMES, _GEMINI_SETTINGS),
    RuleFiles("settings.json", (("PWD", ".gemini"),), _GEMINI_SETTINGS),
)
GOOSE_RULES: Final = RuleFiles(
    "permission.yaml",
    (("GOOSE_PATH_ROOT", "config"), ("XDG_CONFIG_HOME", "goose"), ("HOME", ".config/goose")),
    r"always_allow[\"']?\s*:\s*(\[\s*[^\]\s]|-\s)",
)


def allowing_file(files: tuple[RuleFiles, ...], env: Mapping[str, str], cwd: str) -> str | None:
    """Return a file that allows something, or cannot be read; None if there is none."""
    for each in files:
        for path in _paths(each, env, cwd):
            try:
                text = path.read_text(encoding="utf-8", errors="replace")
            except OSError:
                return str(path)
            if re.search(each.allows, text, re.MULTILINE):
                return str(path)
    return None


def _paths(files: RuleFiles, env: Mapping[str, str], cwd: str) -> Iterator[Path]:
    given = {**env, "PWD": cwd}
    for name, below in files.places:
        if given.get(name):
            place = Path(given[name], below)
            yield from sorted(place.glob(files.pattern))
            return
