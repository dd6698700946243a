"""Where events are kept: the contract, and the stores that fulfil it."""

from sessionmgr.store.append_checks import is_lease_held as is_lease_held
from sessionmgr.store.contract import Store as Store
from sessionmgr.store.errors import (
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
from sessionmgr.store.memory import (
    MemoryStore as MemoryStore,
    open_memory_store as open_memory_store,
)
from sessionmgr.store.redaction import (
    Redactor as Redactor,
)
from sessionmgr.store.rows import (
    Append as Append,
    AppendResult as AppendResult,
    CostTotals as CostTotals,
    EventPage as EventPage,
    EventRow as EventRow,
    Lease as Lease,
    LeaseOwner as LeaseOwner,
    LedgerRow as LedgerRow,
    NewSession as NewSession,
    Page as Page,
    PruneResult as PruneResult,
    RemovalResult as RemovalResult,
    Request as Request,
    RunRow as RunRow,
    SnapshotRow as SnapshotRow,
    StoredRequest as StoredRequest,
    StoredRun as StoredRun,
    StoredSession as StoredSession,
)
from sessionmgr.store.sqlite import (
    SqliteStore as SqliteStore,
    is_locked as is_locked,
    open_sqlite_store as open_sqlite_store,
)

__all__ = [
    "AlreadyEnded",
    "AmbiguousId",
    "Append",
    "AppendInvalid",
    "AppendRefused",
    "AppendResult",
    "CostTotals",
    "EventPage",
    "EventRow",
    "IdTaken",
    "Lease",
    "LeaseHeld",
    "LeaseLost",
    "LeaseOwner",
    "LedgerRow",
    "MemoryStore",
    "NewSession",
    "NotAStore",
    "NumberGap",
    "NumberTaken",
    "Page",
    "PruneResult",
    "Redactor",
    "RemovalResult",
    "Request",
    "RunRow",
    "SnapshotRow",
    "SqliteStore",
    "StaleFence",
    "Store",
    "StoreBusy",
    "StoreClosed",
    "StoreDamaged",
    "StoreError",
    "StoreFailed",
    "StoreFull",
    "StorePathInvalid",
    "StoreReadOnly",
    "StoreTooNew",
    "StoreUnusable",
    "StoredRequest",
    "StoredRun",
    "StoredSession",
    "UnknownId",
    "is_lease_held",
    "is_locked",
    "open_memory_store",
    "open_sqlite_store",
]
from sessionmgr.store.contract import Kind as Kind
from sessionmgr.store.errors import StoreTimeout as StoreTimeout
from sessionmgr.store.redaction import (
    REDACTED as REDACTED,
    StreamRedaction as StreamRedaction,
    TextPatterns as TextPatterns,
)
from sessionmgr.store.sqlite.retention import (
    RewriteResult as RewriteResult,
    rewrite_file as rewrite_file,
)
from sessionmgr.store.sqlite.schema import SCHEMA_VERSION as SCHEMA_VERSION
