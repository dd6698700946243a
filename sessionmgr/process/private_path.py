"""Files and directories that only their owner can read, whatever the umask says.

A file that can hold a prompt, an answer or a variable is made with mode 0600, a directory for such
files with 0700. A file that was there before keeps its mode if it was opened to a group on
purpose; one that everybody may read was made by an older version, and is closed.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

FILE_MODE: Final = 0o600
DIRECTORY_MODE: Final = 0o700
_OTHERS: Final = 0o007


def private_opener(path: str, flags: int) -> int:
    """Open a file that only we can read; for the `opener` of the built-in `open`."""
    file = os.open(path, flags | os.O_CLOEXEC, FILE_MODE)
    try:
        close_to_others(file)
    except BaseException:
        os.close(file)
        raise
    return file


def unlinked_opener(path: str, flags: int) -> int:
    """Open a file that only we can read, and no other one by way of a symbolic link."""
    return private_opener(path, flags | os.O_NOFOLLOW)


def make_private_file(path: Path) -> None:
    """Make an empty file that only we can read, unless there is one; that one is closed to others.

    Raises:
        OSError: The system refuses.
    """
    os.close(private_opener(os.fspath(path), os.O_RDWR | os.O_CREAT))


def make_private_directory(path: Path) -> None:
    """Make a directory, and those above it that are missing, so that only we can enter them.

    Raises:
        OSError: The system refuses.
    """
    missing = [each for each in (path, *path.parents) if not each.exists()]
    for each in reversed(missing):
        with suppress(FileExistsError):  # another process was faster
            each.mkdir(mode=DIRECTORY_MODE)
    path.mkdir(mode=DIRECTORY_MODE, exist_ok=True)  # refuses what is no directory


def close_to_others(file: int) -> None:
    """Take an open file's rights from its group and all others, if all others have any."""
    found = os.fstat(file)
    if (
        stat.S_ISREG(found.st_mode)
        and found.st_mode & _OTHERS
        and found.st_uid == os.geteuid()  # another's file is for him to close
    ):
        with suppress(PermissionError):  # a file system that has no modes
            os.fchmod(file, FILE_MODE)
