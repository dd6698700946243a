"""Translation of SQLite's and the system's errors into errors of the store, which name a remedy."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Final

from sessionmgr.store.errors import (
    NotAStore,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreFailed,
    StoreFull,
    StorePathInvalid,
    StoreReadOnly,
)

BUSY: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
"""Another connection holds the lock; a retry may succeed."""

FATAL: Final = frozenset(
    {
        *BUSY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_READONLY,
    }
)
"""After these a transaction must be rolled back."""

# The system's refusal to let a file grow is reported as one of these, unless it is ENOSPC.
_NOT_WRITTEN: Final = frozenset(
    {
        sqlite3.SQLITE_IOERR_WRITE,
        sqlite3.SQLITE_IOERR_SHMSIZE,
        sqlite3.SQLITE_IOERR_FSYNC,
        sqlite3.SQLITE_IOERR_TRUNCATE,
    }
)
_HEADER: Final = 100  # bytes at the beginning of every database
_HARDLY_ANYTHING: Final = 1 << 20  # bytes: with less, a disk is full


def error_code(error: sqlite3.Error) -> int:
    """Return SQLite's primary code, or 0 if the error is from its Python module."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def translate_error(path: Path, error: sqlite3.Error) -> StoreError:
    """Return the store's error for an error of SQLite."""
    code, name = error_code(error), str(path)
    if code in BUSY:
        return StoreBusy(name, error)
    if code == sqlite3.SQLITE_CORRUPT:
        return StoreDamaged(name, error)
    if code == sqlite3.SQLITE_NOTADB:
        return NotAStore(name, error)
    if code == sqlite3.SQLITE_FULL:
        return StoreFull(name, error)
    if code == sqlite3.SQLITE_READONLY:
        return read_only_error(path) or StoreReadOnly(name, error)
    if code == sqlite3.SQLITE_CANTOPEN:
        return read_only_error(path) or StoreFailed(name, error)
    if getattr(error, "sqlite_errorcode", 0) in _NOT_WRITTEN and _is_full(path):
        return StoreFull(name, error)
    return StoreFailed(name, error)


def _is_full(path: Path) -> bool:
    try:
        disk = os.statvfs(path.parent)
        sizes = [path.with_name(path.name + end) for end in ("", "-wal", "-shm")]
        largest = max(each.stat().st_size for each in sizes if each.exists())
    except (OSError, ValueError):
        return False
    return disk.f_bavail * disk.f_frsize < _HARDLY_ANYTHING or largest >= _size_limit()


def _size_limit() -> float:
    try:
        import resource
    except ImportError:  # not on this system
        return float("inf")
    soft, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    # The last page before the limit may not have fitted.
    return float("inf") if soft == resource.RLIM_INFINITY else soft - (1 << 16)


def read_only_error(path: Path) -> StoreReadOnly | None:
    """Return the error for a missing write permission, if one is missing."""
    if os.access(path, os.F_OK) and not os.access(path, os.W_OK):
        return StoreReadOnly(str(path), "the file is read-only")
    if os.access(path.parent, os.F_OK) and not os.access(path.parent, os.W_OK | os.X_OK):
        return StoreReadOnly(str(path), f"the directory {path.parent} is read-only")
    return None


def check_path(path: Path) -> None:
    """Refuse a path where no store can be.

    The file is not opened for that: closing it again would drop the locks that another
    connection of this process has on it.

    Raises:
        StorePathInvalid: It is a directory, or its directory does not exist.
        StoreReadOnly: The file or its directory may not be written.
    """
    try:
        if path.is_dir():
            raise StorePathInvalid(str(path), "it is a directory")
        if not path.parent.is_dir():
            raise StorePathInvalid(str(path), f"no such directory: {path.parent}")
        if path.exists() and not path.is_file():
            raise StorePathInvalid(str(path), "it is not a regular file")
        # SQLite would treat a file of a single byte as an empty database, and overwrite it.
        if path.exists() and 0 < path.stat().st_size < _HEADER:
            raise NotAStore(str(path), "it is too short")
        if lacking := read_only_error(path):
            raise lacking
    except PermissionError as error:
        raise StoreReadOnly(str(path), error.strerror) from None
    except (OSError, ValueError) as error:
        raise StorePathInvalid(str(path), error) from None
