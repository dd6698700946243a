"""The store in one SQLite file, which several processes may share.

The file lies on a disk of this machine: SQLite's shared memory does not work over a network.
Beside it, while it is open, lie `-wal` and `-shm`; a copy is taken when no process has it open,
or with SQLite's own backup.
"""

from sessionmgr.store.sqlite.lock_probe import is_locked as is_locked
from sessionmgr.store.sqlite.store import (
    SqliteStore as SqliteStore,
    open_sqlite_store as open_sqlite_store,
)

__all__ = ["SqliteStore", "is_locked", "open_sqlite_store"]
