"""Where events are kept: the contract, and the stores that fulfil it."""

from sessionmgr.errors import (
    AlreadyEnded as AlreadyEnded,
    AmbiguousId as AmbiguousId,
    AppendInvalid as AppendInvalid,
    AppendRefused as AppendRefused,
    IdTaken as IdTaken,
    LeaseHeld as LeaseHeld,
    LeaseLost as LeaseLost,
    NotAStore as NotAStore,
    NumberGap as NumberGap,
    NumberTaken as NumberTaken,
    StaleFence as StaleFence,
    StoreBusy as StoreBusy,
    StoreClosed as StoreClosed,
    StoreDamaged as StoreDamaged,
    StoreError as StoreError,
    StoreFailed as StoreFailed,
    StoreFull as StoreFull,
    StorePathInvalid as StorePathInvalid,
    StoreReadOnly as StoreReadOnly,
    StoreTooNew as StoreTooNew,
    StoreUnusable as StoreUnusable,
    UnknownId as UnknownId,
)
from sessionmgr.store.admission import is_held as is_held
from sessionmgr.store.contract import Store as Store
from sessionmgr.store.memory import (
    MemoryStore as MemoryStore,
    open_memory_store as open_memory_store,
)
from sessionmgr.store.redaction import (
    Redactor as Redactor,
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
    Removed as Removed,
    Request as Request,
    RunRow as RunRow,
    Snapshot as Snapshot,
    StoredRequest as StoredRequest,
    StoredRun as StoredRun,
    StoredSession as StoredSession,
)
from sessionmgr.store.sqlite import (
    SqliteStore as SqliteStore,
    is_locked as is_locked,
    open_sqlite_store as open_sqlite_store,
)
