"""The store's place in the tree: opened before anybody writes, closed after everybody has."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.store import MemoryStore, Store, open_sqlite_store

if TYPE_CHECKING:
    from sessionmgr.manager.manager_state import ManagerState


class StoreKeeping:
    """A store in a file, or one that somebody else has opened."""

    def __init__(self, store: Store | str | Path | None) -> None:
        self._path: Final = Path(store) if isinstance(store, str | Path) else None
        self._given: Final = MemoryStore() if store is None else store

    @property
    def spool_path(self) -> Path | None:
        """Where to put aside what the file cannot take."""
        if self._path is None or not self._path.name:
            return None  # `/` and `.` have no name; opening the store refuses them
        return self._path.with_name(f"{self._path.name}-spool")

    async def keep(self, tables: ManagerState, *, task_status: trio.TaskStatus[None]) -> None:
        """Be the child that has the store open."""
        tables.store_path = self._path
        if self._path is None:
            assert not isinstance(self._given, str | Path)
            tables.store = self._given
            task_status.started()
            await trio.sleep_forever()
        else:
            async with open_sqlite_store(self._path) as store:
                tables.store = store
                task_status.started()
                try:
                    await trio.sleep_forever()
                finally:
                    tables.has_store = False
