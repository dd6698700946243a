"""Starting a program on the guard's three descriptors, or saying exactly why not.

Runs in the warden: the standard library, and little of it.
"""

from __future__ import annotations

import errno
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class NotStartedError(Exception):
    """Why a program did not start: what is wrong, with which path, and the system's number."""

    def __init__(self, what: bytes, path: bytes, number: int) -> None:
        super().__init__(what, path, number)
        self.what = what
        self.path = path
        self.number = number


def find_program(program: bytes, path: bytes, directory: bytes = b"") -> bytes:
    """Return the file that a program's name means, by the child's own PATH and directory.

    Raises:
        NotStartedError: there is none, or none that may be run.
    """
    if b"/" in program:
        return _runnable(os.path.join(directory, program))
    refused: NotStartedError | None = None
    for folder in path.split(b":"):
        try:
            return _runnable(os.path.join(directory, folder, program))
        except NotStartedError as error:
            if error.what == b"executable":
                refused = refused or error
    raise refused or NotStartedError(b"program", program, errno.ENOENT)


def _runnable(path: bytes) -> bytes:
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        missing = error.errno in (errno.ENOENT, errno.ENOTDIR)
        what = b"program" if missing else b"executable"
        raise NotStartedError(what, path, error.errno or 0) from None
    if not stat.S_ISREG(mode) or not os.access(path, os.X_OK, effective_ids=True):
        raise NotStartedError(b"executable", path, errno.EACCES)
    return path


def change_directory(directory: bytes) -> None:
    """Go where the program is to run.

    Raises:
        NotStartedError: there is no such directory, or none that we may enter.
    """
    try:
        os.chdir(directory)
    except OSError as error:
        raise NotStartedError(b"directory", directory, error.errno or 0) from None


def start_program(
    arguments: Sequence[bytes],
    environment: dict[bytes, bytes],
    descriptors: Sequence[int],
    ignored: Sequence[int],
) -> int:
    """Start it in a session of its own, on these as its 0, 1 and 2.

    All its signals are the default, for `ignored` are all those that we ignore.

    Raises:
        NotStartedError: it cannot be started.
    """
    path = find_program(arguments[0], environment.get(b"PATH", os.defpath.encode()))
    try:
        return os.posix_spawn(
            path,
            list(arguments),
            environment,
            file_actions=[(os.POSIX_SPAWN_DUP2, each, at) for at, each in enumerate(descriptors)],
            setsid=True,
            setsigmask=(),
            setsigdef=ignored,
        )
    except OSError as error:
        # The file is there: what ENOENT misses is the interpreter that its first line names.
        what = {errno.ENOENT: b"interpreter", errno.ENOEXEC: b"executable"}
        number = error.errno or 0
        raise NotStartedError(what.get(number, b"system"), path, number) from None
