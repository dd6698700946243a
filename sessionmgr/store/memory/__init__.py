"""Store in memory: for tests and for programs that need no record."""

from sessionmgr.store.memory.store import (
    MemoryStore as MemoryStore,
    open_memory_store as open_memory_store,
)

__all__ = ["MemoryStore", "open_memory_store"]
