"""Where events are kept: the contract, and the stores that fulfil it."""

from sessionmgr.store.contract import Store as Store
from sessionmgr.store.memory import (
    MemoryStore as MemoryStore,
    open_memory_store as open_memory_store,
)
from sessionmgr.store.row import (
    Append as Append,
    Appended as Appended,
    Costs as Costs,
    EventPage as EventPage,
    EventRow as EventRow,
    Lease as Lease,
    LedgerRow as LedgerRow,
    NewSession as NewSession,
    Owner as Owner,
    Page as Page,
    Pruned as Pruned,
    Request as Request,
    RunRow as RunRow,
    Snapshot as Snapshot,
    StoredRequest as StoredRequest,
    StoredRun as StoredRun,
    StoredSession as StoredSession,
)
from sessionmgr.store.sqlite import (
    SqliteStore as SqliteStore,
    open_sqlite_store as open_sqlite_store,
)
