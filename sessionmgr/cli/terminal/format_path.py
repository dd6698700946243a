"""Paths for display in tables and messages."""

from __future__ import annotations

import os
from pathlib import PurePath

from sessionmgr.cli.terminal.safe_text import display_width, truncate


def short_path(path: str) -> str:
    """Return a path relative to the working directory if it lies in it, else with `~`."""
    here = _working_directory()
    if here not in ("", "/") and path.startswith(f"{here}/"):
        return path.removeprefix(f"{here}/")
    return home_path(path)


def home_path(path: str) -> str:
    """Return a path with `~` in place of the home directory."""
    home = os.path.expanduser("~")  # noqa: PTH111  # no error where there is no home
    return path.replace(home, "~", 1) if path.startswith(f"{home}/") else path


def last_part(path: str) -> str:
    """Return the last part of a path: for a directory of a project, the project's name."""
    return PurePath(path).name or path


def fit_path(path: str, width: int) -> str:
    """Return a path truncated to `width` columns at its beginning, since its end tells more."""
    if display_width(path) <= width:
        return path
    tail = path[-max(width - 1, 0) :] if width > 1 else ""
    while display_width(tail) >= width > 1:
        tail = tail[1:]
    return truncate(f"…{tail}", width)


def _working_directory() -> str:
    try:
        return os.getcwd()  # noqa: PTH109  # text is all that is needed
    except FileNotFoundError:
        return ""
