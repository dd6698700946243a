"""Output directory of a batch: its lock, and the paths of its files."""

from __future__ import annotations

import fcntl
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from sessionmgr.batch.errors import BatchBusy, LedgerUnusable, OutDirectoryUnusable
from sessionmgr.process import make_private_directory, unlinked_opener

LEDGER: Final = "ledger.db"
TRIES: Final = 10
"""Number of attempts to lock a directory that another process removes meanwhile."""


class BatchDirectory:
    """A batch's locked output directory."""

    def __init__(self, out: str | Path) -> None:
        """Create the directory if necessary, and lock it.

        Raises:
            BatchBusy: Another process has locked it.
            LedgerUnusable: It is not writable, or has results without a ledger.
        """
        self.path: Final = Path(out).absolute()
        self._made: Final = [each for each in (self.path, *self.path.parents) if not each.exists()]
        _require_no_links(self.path)
        if not contains_batch(out):
            _require_no_results(self.results)
        self._lock: Final = _lock_directory(self.path, str(out))
        self.is_new: Final = not contains_batch(out)
        """Whether the directory contained no batch before."""

    def close(self) -> None:
        """Release the lock."""
        os.close(self._lock)

    def discard(self) -> None:
        """Remove the files of a batch that did not start; other files in the directory stay."""
        for name in (LEDGER, f"{LEDGER}-wal", f"{LEDGER}-shm", "lock"):
            (self.path / name).unlink(missing_ok=True)
        for directory in self._made:
            with suppress(OSError):  # the directory contains other files
                directory.rmdir()

    @property
    def ledger(self) -> Path:
        """Path of the ledger."""
        return self.path / LEDGER

    @property
    def results(self) -> Path:
        """Path of the results."""
        return self.path / "results.jsonl"

    @property
    def summary(self) -> Path:
        """Path of the summary."""
        return self.path / "summary.json"


def _lock_directory(path: Path, out: str) -> int:
    """Lock a batch's directory, and return the descriptor that holds the lock.

    Raises:
        BatchBusy: Another process has locked it.
        LedgerUnusable: It is not writable.
    """
    for _ in range(TRIES):
        try:
            make_private_directory(path)
            lock = unlinked_opener(str(path / "lock"), os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise OutDirectoryUnusable(out, _error_text(error)) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.read(lock, 100).decode("utf-8", "replace").strip()
            os.close(lock)
            raise BatchBusy(out, holder or "another process") from error
        if os.fstat(lock).st_nlink:
            os.ftruncate(lock, 0)
            os.write(lock, f"process {os.getpid()}\n".encode())
            return lock
        os.close(lock)  # another process has removed the directory, and the lock with it
    raise BatchBusy(out, "another process")


def _require_no_links(path: Path) -> None:
    """Check that the batch's files are written in its directory and not through links.

    A checked-out project can contain such a directory, with links to the user's files.

    Raises:
        LedgerUnusable: A symbolic link is in the way.
    """
    for name in ("lock", LEDGER, f"{LEDGER}-wal", f"{LEDGER}-shm", f"{LEDGER}-journal", "items"):
        link = path / name
        if link.is_symlink():
            why = f"{name} is a symbolic link to {link.readlink()}; remove it, or choose another"
            raise LedgerUnusable(str(path), f"{why} directory (--out)")


def _require_no_results(path: Path) -> None:
    """Check that the batch would not overwrite results that no ledger contains.

    Raises:
        OutDirectoryUnusable: The directory has such results.
    """
    with suppress(FileNotFoundError, NotADirectoryError):
        found = path.lstat()
        if stat.S_ISREG(found.st_mode) and found.st_size:
            why = f"it contains {path.name} ({found.st_size} bytes) but no {LEDGER}"
            raise OutDirectoryUnusable(str(path.parent), f"{why}; move {path.name} away")


def _error_text(error: OSError) -> str:
    if isinstance(error, FileExistsError | NotADirectoryError):
        return "it, or one of its parents, is not a directory"
    return error.strerror or str(error)


def contains_batch(out: str | Path) -> bool:
    """Return whether a directory contains a batch.

    Args:
        out: The directory.
    """
    return (Path(out) / LEDGER).exists()


def require_unlocked(out: str | Path) -> None:
    """Check that no process runs the batch in a directory, if there is one.

    Args:
        out: The directory.

    Raises:
        BatchBusy: A process runs it.
        LedgerUnusable: The directory cannot be read.
    """
    if contains_batch(out):
        BatchDirectory(out).close()
