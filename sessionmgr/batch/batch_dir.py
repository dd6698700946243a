"""The directory that is a batch: one process at a time, and what stands where in it."""

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
"""How often a directory is taken anew that vanishes meanwhile."""


class BatchDirectory:
    """A batch's directory, while somebody works in it."""

    def __init__(self, out: str | Path) -> None:
        """Make the directory, if need be, and take it.

        Raises:
            BatchBusy: Another process works there.
            LedgerUnusable: It cannot be written, or holds results that no ledger has.
        """
        self.path: Final = Path(out).absolute()
        self._made: Final = [each for each in (self.path, *self.path.parents) if not each.exists()]
        _require_no_links(self.path)
        if not contains_batch(out):
            _require_no_results(self.results)
        self._lock: Final = _lock_directory(self.path, str(out))
        self.is_new: Final = not contains_batch(out)
        """Whether no batch was begun here before."""

    def close(self) -> None:
        """Let others work there."""
        os.close(self._lock)

    def discard(self) -> None:
        """Leave nothing of a batch that was not begun; what others have put here stays."""
        for name in (LEDGER, f"{LEDGER}-wal", f"{LEDGER}-shm", "lock"):
            (self.path / name).unlink(missing_ok=True)
        for directory in self._made:
            with suppress(OSError):  # it is not empty
                directory.rmdir()

    @property
    def ledger(self) -> Path:
        """Where the ledger is."""
        return self.path / LEDGER

    @property
    def results(self) -> Path:
        """Where the results are."""
        return self.path / "results.jsonl"

    @property
    def summary(self) -> Path:
        """Where the summary is."""
        return self.path / "summary.json"


def _lock_directory(path: Path, out: str) -> int:
    """Lock a batch's directory, and return the descriptor that holds the lock.

    Raises:
        BatchBusy: Another process works there.
        LedgerUnusable: It cannot be written.
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
        os.close(lock)  # a batch that was not begun has vanished, and its lock with it
    raise BatchBusy(out, "another process")


def _require_no_links(path: Path) -> None:
    """Make sure that files of a batch are written in its directory.

    A checked-out project can contain such a directory, with links to the user's files.

    Raises:
        LedgerUnusable: A symbolic link is in the way.
    """
    for name in ("lock", LEDGER, f"{LEDGER}-wal", f"{LEDGER}-shm", f"{LEDGER}-journal", "items"):
        link = path / name
        if link.is_symlink():
            why = f"{name} is a symbolic link to {link.readlink()}: remove it, or choose another"
            raise LedgerUnusable(str(path), f"{why} directory (--out)")


def _require_no_results(path: Path) -> None:
    """Make sure that no results are written over that stand in no ledger.

    Raises:
        OutUnusable: There are some.
    """
    with suppress(FileNotFoundError, NotADirectoryError):
        found = path.lstat()
        if stat.S_ISREG(found.st_mode) and found.st_size:
            why = f"its {path.name} has results ({found.st_size} bytes), and there is no {LEDGER}"
            raise OutDirectoryUnusable(
                str(path.parent), f"{why} that has them: move {path.name} away"
            )


def _error_text(error: OSError) -> str:
    if isinstance(error, FileExistsError | NotADirectoryError):
        return "it is, or lies below, a file that is not a directory"
    return error.strerror or str(error)


def contains_batch(out: str | Path) -> bool:
    """Return whether that directory contains a batch.

    Args:
        out: The directory.
    """
    return (Path(out) / LEDGER).exists()


def require_unlocked(out: str | Path) -> None:
    """Make sure that nobody works in a batch's directory, if there is one.

    Args:
        out: The directory.

    Raises:
        BatchBusy: Somebody does.
        LedgerUnusable: It cannot be looked into.
    """
    if contains_batch(out):
        BatchDirectory(out).close()
