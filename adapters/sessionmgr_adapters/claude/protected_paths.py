"""What is guarded: files that configure or run something, so that to edit one is more than that.

A hook in `.claude/settings.json` is a command that the next Claude Code runs unasked; git, shells
and editors have such files, too. Claude Code itself asks about them where it accepts edits.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

DIRECTORIES: Final = frozenset({
    *(".claude", ".git", ".vscode", ".idea", ".husky", ".cargo", ".devcontainer", ".yarn", ".mvn"),
})  # fmt: skip
FILES: Final = frozenset({
    *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".envrc"),
    *(".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout"),
    *(".gitconfig", ".gitmodules", ".pre-commit-config.yaml", "lefthook.yml", "lefthook.yaml"),
    *(".mcp.json", ".claude.json", ".ripgreprc", ".npmrc", ".yarnrc", ".yarnrc.yml"),
    *("bunfig.toml", ".bunfig.toml", ".bazelrc", "pyrightconfig.json"),
    "gradle-wrapper.properties",
})  # fmt: skip
WORKTREES: Final = (".claude", "worktrees")
"""Where Claude Code keeps copies of a project to work in: but for that, they are like any other."""


def is_protected(path: str, directories: Sequence[str]) -> bool:
    """Whether a path is of what is guarded; what leads to a directory to work in is not judged."""
    pure = PurePath(path)
    inside = [pure.relative_to(each).parts for each in directories if pure.is_relative_to(each)]
    return any(map(_is_protected, inside or [pure.parts]))


def _is_protected(parts: tuple[str, ...]) -> bool:
    folded = tuple(each.casefold() for each in parts)
    while folded[: len(WORKTREES)] == WORKTREES:
        folded = folded[len(WORKTREES) + 1 :]
    return not DIRECTORIES.isdisjoint(folded) or (bool(folded) and folded[-1] in FILES)
