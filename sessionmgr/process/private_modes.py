"""Files and directories that only their owner can read, regardless of the umask.

A file that can hold a prompt, an answer or a variable is created with mode 0600, a directory for
such files with 0700. An existing file keeps its mode if it was opened to a group on purpose; a
file that all users may read was created by an older version, and its mode is tightened.
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
    """Open a file that only its owner can read; an `opener` for the built-in `open`."""
    file = os.open(path, flags | os.O_CLOEXEC, FILE_MODE)
    try:
        remove_others_rights(file)
    except BaseException:
        os.close(file)
        raise
    return file


def unlinked_opener(path: str, flags: int) -> int:
    """Open a file that only its owner can read, refusing symbolic links."""
    return private_opener(path, flags | os.O_NOFOLLOW)


def make_private_file(path: Path) -> None:
    """Create an empty private file; if it exists, tighten its mode.

    No descriptor of it is opened and closed again: that would drop the locks that this process has
    on the file, such as those of SQLite.

    Raises:
        OSError: The system refuses.
    """
    place = Path(os.path.realpath(path))  # a link may point to a file that is yet to be created
    try:
        _create(place)
    except FileExistsError:
        if _is_open_to_others(place.stat()):
            with suppress(PermissionError):  # a file system without modes
                place.chmod(FILE_MODE)


def _create(place: Path) -> None:
    try:
        os.mknod(place, FILE_MODE)
    except FileExistsError:
        raise
    except OSError:  # only root may do that here; a file that is new has no locks
        os.close(os.open(place, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE))


def make_private_directory(path: Path) -> None:
    """Create a directory and its missing parents so that only their owner can enter them.

    Raises:
        OSError: The system refuses.
    """
    missing = [each for each in (path, *path.parents) if not each.exists()]
    for each in reversed(missing):
        with suppress(FileExistsError):  # another process was faster
            each.mkdir(mode=DIRECTORY_MODE)
    path.mkdir(mode=DIRECTORY_MODE, exist_ok=True)  # refuses anything but a directory


def remove_others_rights(file: int) -> None:
    """Remove an open file's rights for group and others, if others have any."""
    if _is_open_to_others(os.fstat(file)):
        with suppress(PermissionError):  # a file system without modes
            os.fchmod(file, FILE_MODE)


def _is_open_to_others(found: os.stat_result) -> bool:
    return (
        stat.S_ISREG(found.st_mode)
        and bool(found.st_mode & _OTHERS)
        and found.st_uid == os.geteuid()  # only its owner can change the mode
    )
