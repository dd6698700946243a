"""Starting a program on the reaper's three descriptors, or reporting why it cannot start.

Runs in the spawner: it imports little of the standard library and nothing else.
"""

from __future__ import annotations

import errno
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class NotStartedError(Exception):
    """A program did not start: the problem, the path concerned, and the system's error number."""

    def __init__(self, what: bytes, path: bytes, number: int) -> None:
        super().__init__(what, path, number)
        self.what = what
        self.path = path
        self.number = number


def find_program(program: bytes, path: bytes, directory: bytes = b"") -> bytes:
    """Return the file of a program, found by the child's own PATH and directory.

    Raises:
        NotStartedError: No file was found, or none that may be executed.
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
    """Change to the directory that the program runs in.

    Raises:
        NotStartedError: The directory does not exist, or is not accessible.
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
    """Start a program in a new session, with these descriptors as its 0, 1 and 2.

    All its signals have their default action, because `ignored` lists all that we ignore.

    Raises:
        NotStartedError: The program cannot be started.
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
        # The file exists: ENOENT is about the interpreter that its first line names.
        what = {errno.ENOENT: b"interpreter", errno.ENOEXEC: b"executable"}
        number = error.errno or 0
        raise NotStartedError(what.get(number, b"system"), path, number) from None
