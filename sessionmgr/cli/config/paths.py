"""Paths of the store and of the user's own settings on this machine.

Only the user can read them: directories are created with mode 0700, files with 0600.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sessionmgr.cli.errors import CommandLineInvalid
from sessionmgr.cli.terminal.stdout import print_note

if TYPE_CHECKING:
    from collections.abc import Iterator

DIRECTORY: Final = "sessionmgr"
STORE: Final = "sessionmgr.db"
SETTINGS: Final = "sessionmgr.toml"


def state_directory() -> Path:
    """Return the directory of the default store."""
    return _home("XDG_STATE_HOME", ".local", "state") / DIRECTORY


def default_store() -> Path:
    """Return the path of the default store."""
    return state_directory() / STORE


def user_settings() -> Path:
    """Return the path of the user's own settings."""
    return _home("XDG_CONFIG_HOME", ".config") / DIRECTORY / SETTINGS


def find_working_directory() -> Path | None:
    """Return the working directory; None if it has been deleted."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return None


def nearest_settings(start: Path) -> Path | None:
    """Return the nearest settings file in `start` or above it."""
    return next(settings_above(start), None)


def settings_above(start: Path) -> Iterator[Path]:
    """Yield the settings files in `start` and above it, nearest first.

    Files of other users are skipped: a user who may write in a directory above (`/tmp`) must not
    control what agents do below it. Files of the user, of root and of the owner of `start` count.
    """
    trusted = {os.getuid(), 0, start.stat().st_uid}
    found = False
    for directory in (start, *start.parents):
        path = directory / SETTINGS
        if path.is_file():
            if path.stat().st_uid in trusted:
                found = True
                yield path
            elif not found:
                print_note(f"{path} is ignored: it belongs to another user")


def make_private(path: Path) -> None:
    """Create the file, and our own directory, so that only the user can read them."""
    from sessionmgr.process import make_private_file

    if path.parent == state_directory():
        make_private_directory(path.parent)
    if path.parent.is_dir() and not path.exists():
        make_private_file(path)


def make_private_directory(path: Path) -> None:
    """Create a directory that only the user can read; an existing one is left unchanged."""
    from sessionmgr.process import make_private_directory as make

    make(path)


def _home(variable: str, *below: str) -> Path:
    named = os.environ.get(variable, "")
    if Path(named).is_absolute():  # the XDG specification requires that a relative path is ignored
        return Path(named)
    try:
        return Path.home().joinpath(*below)
    except RuntimeError:
        raise CommandLineInvalid(
            f"this user has no home directory: set HOME or {variable}"
        ) from None
