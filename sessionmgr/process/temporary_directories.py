"""Temporary directory of this process, which contains its private files.

It exists while it has files, and contains a file that this process keeps locked. The system
releases the lock when the process ends in any way; other processes then see that the directory is
abandoned, and remove it. The lock also works where process numbers do not, as between two
containers that share a directory.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import stat
import tempfile
import threading
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

log: Final = logging.getLogger("sessionmgr.process")

PREFIX: Final = "sessionmgr-"
LOCK: Final = ".lock"
_NEW: Final = ".lock.new"


class _LockedDirectory:
    """Directory with a lock on it."""

    def __init__(self, place: Path) -> None:
        self.path: Final = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
        self.made: Final[set[Path]] = set()
        try:
            self._lock = self._locked()
        except BaseException:
            with suppress(OSError):  # the removal itself may need resources that are lacking
                self.path.rmdir()
            raise

    def _locked(self) -> int | None:
        new, flags = self.path / _NEW, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        file = os.open(new, flags, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            new.rename(self.path / LOCK)  # visible to others only once it is locked
        except OSError as error:  # a file system without locks: the directory is never removed
            log.warning(
                "The temporary directory could not be locked and will not be removed after a"
                " crash. path=%s error=%s",
                self.path,
                error,
            )
            os.close(file)
            return None
        return file

    def remove(self) -> None:
        """Remove the directory and release the lock."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)


class TemporaryDirectories:
    """Directories of a process for its private files: usually one for each place."""

    def __init__(self) -> None:
        self._bases: Final[dict[tuple[Path, int], _LockedDirectory]] = {}
        self._one_at_a_time: Final = threading.Lock()

    def make(self) -> Path:
        """Create a directory that only its owner can enter.

        Raises:
            OSError: The system refuses to create it.
        """
        place = Path(tempfile.gettempdir()).absolute()
        key = place, os.getpid()  # a forked process does not inherit it
        with self._one_at_a_time:
            base = self._bases.get(key)
            if base is not None and not base.path.is_dir():  # a clean-up job has removed it
                self._bases.pop(key).remove()
                base = None
            if base is None:
                base = self._bases[key] = _LockedDirectory(place)
            made = Path(tempfile.mkdtemp(dir=base.path))
            base.made.add(made)
            return made

    def remove(self, made: Path) -> None:
        """Remove a directory, and its parent if it was the last one in it."""
        with self._one_at_a_time:
            shutil.rmtree(made, ignore_errors=True)
            for key, base in list(self._bases.items()):
                base.made.discard(made)
                if not base.made and key[1] == os.getpid():
                    del self._bases[key]
                    base.remove()


OURS: Final = TemporaryDirectories()
"""The directories of this process."""


def remove_stale_directories(place: Path | None = None) -> list[Path]:
    """Remove and return directories that ended processes of this library have left."""
    place = place or Path(tempfile.gettempdir())
    removed: list[Path] = []
    with suppress(OSError):  # the directory cannot be listed
        for path in sorted(place.glob(f"{PREFIX}*")):
            with suppress(OSError):  # another user's, or another process was faster
                if _remove_if_abandoned(path):
                    log.info("Private files of an ended process were removed. path=%s", path)
                    removed.append(path)
    return removed


def _remove_if_abandoned(path: Path) -> bool:
    with ExitStack() as stack:
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        stack.callback(os.close, directory)
        if os.fstat(directory).st_uid != os.geteuid():
            return False
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        file = os.open(LOCK, flags, dir_fd=directory)
        stack.callback(os.close, file)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return False
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while its owner lives
        shutil.rmtree(path)
        return True
