"""The store that forgets: everything in dictionaries, for tests and for what needs no record."""

from sessionmgr.store.memory.store import (
    MemoryStore as MemoryStore,
    open_memory_store as open_memory_store,
)

__all__ = ["MemoryStore", "open_memory_store"]
