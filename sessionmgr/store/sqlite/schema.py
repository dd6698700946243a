"""Schema: the tables, and the application id and version that identify a store.

Sessions and runs have integer keys, and events are appended to one table with one index: the rows
of many sessions arrive interleaved, and a table in the order of sessions would be fragmented. Only
the first event of a batch has the batch's identity. Blobs are in the same file: so the store
remains one file to copy, a blob is durable when its transaction is, and a crash leaves nothing
behind. The images that agents send have sizes that SQLite reads as fast as files.
"""

from typing import Final

APPLICATION_ID: Final = 0x5E55_10A5 & 0x7FFF_FFFF
SCHEMA_VERSION: Final = 1

TABLES: Final = (
    """
    CREATE TABLE sessions (
        key INTEGER PRIMARY KEY,
        session_id TEXT NOT NULL UNIQUE,
        provider TEXT NOT NULL,
        created INTEGER NOT NULL,
        closed INTEGER,
        fence INTEGER NOT NULL,
        last INTEGER NOT NULL,
        first_body BLOB NOT NULL,
        body BLOB
    )
    """,
    """
    CREATE TABLE runs (
        key INTEGER PRIMARY KEY,
        run_id TEXT NOT NULL UNIQUE,
        session INTEGER NOT NULL,
        status TEXT NOT NULL,
        first INTEGER,
        last INTEGER,
        terminal INTEGER,
        ended INTEGER,
        pruned INTEGER NOT NULL DEFAULT 0,
        body BLOB NOT NULL
    )
    """,
    "CREATE INDEX runs_by_session ON runs (session)",
    "CREATE INDEX runs_alive ON runs (key) WHERE status IN ('pending', 'running')",
    "CREATE INDEX runs_to_prune ON runs (ended) WHERE ended IS NOT NULL AND pruned < last",
    """
    CREATE TABLE events (
        id INTEGER PRIMARY KEY,
        session INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        run INTEGER,
        type TEXT NOT NULL,
        batch TEXT,
        body BLOB NOT NULL
    )
    """,
    "CREATE UNIQUE INDEX events_by_number ON events (session, seq)",
    """
    CREATE TABLE holes (
        session INTEGER NOT NULL,
        first INTEGER NOT NULL,
        last INTEGER NOT NULL,
        run INTEGER NOT NULL,
        type TEXT NOT NULL,
        PRIMARY KEY (session, first)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE ledger (
        id INTEGER PRIMARY KEY,
        session INTEGER NOT NULL,
        run INTEGER,
        provider_session_id TEXT,
        input INTEGER NOT NULL,
        cached_input INTEGER NOT NULL,
        cache_write INTEGER NOT NULL,
        output INTEGER NOT NULL,
        reasoning INTEGER NOT NULL,
        nano_usd INTEGER,
        provenance TEXT NOT NULL
    )
    """,
    "CREATE INDEX ledger_by_session ON ledger (session)",
    "CREATE INDEX ledger_by_run ON ledger (run)",
    "CREATE INDEX ledger_by_provider_session ON ledger (provider_session_id)",
    "CREATE TABLE blobs (sha256 TEXT PRIMARY KEY, body BLOB NOT NULL)",
    """
    CREATE TABLE snapshots (
        key INTEGER PRIMARY KEY,
        snapshot_id TEXT NOT NULL UNIQUE,
        session_id TEXT NOT NULL,
        run_id TEXT,
        at INTEGER NOT NULL,
        body BLOB NOT NULL
    )
    """,
    "CREATE INDEX snapshots_by_session ON snapshots (session_id)",
    "CREATE TABLE backoffs (key TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE meta (key TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID",
    """
    CREATE TABLE leases (
        name TEXT PRIMARY KEY,
        fence INTEGER NOT NULL,
        expires INTEGER,
        boot_id TEXT,
        pid INTEGER,
        start INTEGER,
        owner TEXT,
        namespace TEXT
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE requests (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        request_id TEXT NOT NULL UNIQUE,
        kind TEXT NOT NULL,
        target TEXT NOT NULL,
        at INTEGER NOT NULL,
        body BLOB NOT NULL,
        boot_id TEXT,
        pid INTEGER,
        start INTEGER,
        owner TEXT,
        result BLOB,
        namespace TEXT
    )
    """,
    "CREATE INDEX requests_open ON requests (number) WHERE result IS NULL",
)

ADDED: Final = (("leases", "namespace", "TEXT"), ("requests", "namespace", "TEXT"))
"""Columns that files of an earlier version lack: table, name, type.

The store adds them when it opens such a file. Earlier versions name the columns that they read
and write, so the schema version stays the same.
"""
