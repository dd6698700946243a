"""Where events are kept: the contract, and the stores that fulfil it."""

from sessionmgr.store.contract import Store as Store
from sessionmgr.store.memory import (
    MemoryStore as MemoryStore,
    open_memory_store as open_memory_store,
)
