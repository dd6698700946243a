"""Paths as a provider names them: their resolution, and which of them are protected.

Protected files configure or run something, so that an edit has further effects. A hook in
`.claude/settings.json` is a command that the next Claude Code runs without asking; git, shells and
editors have such files, too. Claude Code itself asks about them in `acceptEdits`.
"""

from __future__ import annotations

import os
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

PROTECTED_DIRECTORIES: Final = frozenset({
    *(".claude", ".git", ".vscode", ".idea", ".husky", ".cargo", ".devcontainer", ".yarn", ".mvn"),
})  # fmt: skip
PROTECTED_FILES: Final = frozenset({
    *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".envrc"),
    *(".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout"),
    *(".gitconfig", ".gitmodules", ".pre-commit-config.yaml", "lefthook.yml", "lefthook.yaml"),
    *(".mcp.json", ".claude.json", ".ripgreprc", ".npmrc", ".yarnrc", ".yarnrc.yml"),
    *("bunfig.toml", ".bunfig.toml", ".bazelrc", "pyrightconfig.json"),
    "gradle-wrapper.properties",
})  # fmt: skip
WORKTREES: Final = (".claude", "worktrees")
"""The directory of Claude Code's working copies of a project; their files are not protected."""


def resolve_within(directories: Sequence[str], path: str) -> str:
    """Resolve a path, including links, within the one of `directories` that contains it.

    A relative path is resolved against the first of them, where the run works. An unresolvable
    path is returned as it is: a relative one without directories, one that begins with `~` (only
    the provider can expand it), and one that is not a valid file name.
    """
    if path.startswith("~") or "\0" in path or not (directories or PurePath(path).is_absolute()):
        return path
    real = PurePath(os.path.realpath(os.path.join(directories[0] if directories else "/", path)))  # noqa: PTH118
    for directory in directories:
        inside = PurePath(os.path.realpath(directory))
        if real.is_relative_to(inside):
            return str(PurePath(directory) / real.relative_to(inside))
    return str(real)


def is_protected(path: str, directories: Sequence[str]) -> bool:
    """Whether a path is protected; the part of it that leads to a working directory is ignored."""
    pure = PurePath(path)
    inside = [pure.relative_to(each).parts for each in directories if pure.is_relative_to(each)]
    return any(map(_is_protected, inside or [pure.parts]))


def _is_protected(parts: tuple[str, ...]) -> bool:
    folded = tuple(each.casefold() for each in parts)
    while folded[: len(WORKTREES)] == WORKTREES:
        folded = folded[len(WORKTREES) + 1 :]
    return not PROTECTED_DIRECTORIES.isdisjoint(folded) or (
        bool(folded) and folded[-1] in PROTECTED_FILES
    )
