"""Paths as tables and messages show them."""

from __future__ import annotations

import os
from pathlib import PurePath


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


def _working_directory() -> str:
    try:
        return os.getcwd()  # noqa: PTH109  # text is all that is needed
    except FileNotFoundError:
        return ""
