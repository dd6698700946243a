"""Store in one SQLite file, which several processes may share.

The file must be on a local disk: SQLite's shared memory does not work over a network. While the
store is open, two files with the suffixes `-wal` and `-shm` are beside it. Copy the file when no
process has it open, or with SQLite's own backup.
"""

from sessionmgr.store.sqlite.lock_probe import is_locked as is_locked
from sessionmgr.store.sqlite.store import (
    SqliteStore as SqliteStore,
    open_sqlite_store as open_sqlite_store,
)

__all__ = ["SqliteStore", "is_locked", "open_sqlite_store"]
