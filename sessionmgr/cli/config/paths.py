"""Where things are kept on this machine: the store, and the user's own settings.

All of it is the user's alone: directories of ours are made 0700, files 0600.
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
    """Return the directory of the store that is used when nobody names one."""
    return _home("XDG_STATE_HOME", ".local", "state") / DIRECTORY


def default_store() -> Path:
    """Return the store that is used when nobody names one."""
    return state_directory() / STORE


def user_settings() -> Path:
    """Return where the user's own settings may stand."""
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

    Those of strangers are passed over: whoever may write in a directory above (`/tmp`) is not to
    say what agents may do below. A stranger is neither us, nor root, nor who has `start`.
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
    """Make the file, and the directory if it is our own, so that nobody else can read them."""
    from sessionmgr.process import make_private_file

    if path.parent == state_directory():
        make_private_directory(path.parent)
    if path.parent.is_dir() and not path.exists():
        make_private_file(path)


def make_private_directory(path: Path) -> None:
    """Make a directory that nobody else can read; one that is there stays as it is."""
    from sessionmgr.process import make_private_directory as make

    make(path)


def _home(variable: str, *below: str) -> Path:
    named = os.environ.get(variable, "")
    if Path(named).is_absolute():  # what is not is to be ignored, says the XDG specification
        return Path(named)
    try:
        return Path.home().joinpath(*below)
    except RuntimeError:
        raise CommandLineInvalid(
            f"this user has no home directory: set HOME or {variable}"
        ) from None
