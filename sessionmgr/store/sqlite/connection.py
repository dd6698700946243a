"""Connections to the file: one that writes, and others that only read."""

from __future__ import annotations

import random
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from sessionmgr.process import make_private_file
from sessionmgr.store.errors import NotAStore, StoreFailed, StoreTooNew
from sessionmgr.store.sqlite.error_translation import BUSY, check_path, error_code, translate_error
from sessionmgr.store.sqlite.schema import ADDED, APPLICATION_ID, SCHEMA_VERSION, TABLES

Durability: TypeAlias = Literal["process", "power"]
"""What an acknowledged append survives: the end of this process, or a power failure too."""

CHECKPOINT_PAGES: Final = 16_384
"""Log pages after which a commit runs a checkpoint, if no idle moment came before."""
LOG_BYTES: Final = 64 * 1024 * 1024


class SqliteOptions(Struct, frozen=True, kw_only=True):
    """Options of the file."""

    path: Path
    durability: Durability = "process"
    patience: float = 30.0
    """Seconds to wait for another process's lock."""
    max_bytes: int | None = None
    """Maximum size of the file."""


def connect(options: SqliteOptions) -> sqlite3.Connection:
    """Open the file, regardless of its contents."""
    return sqlite3.connect(
        options.path.absolute().as_uri(),
        timeout=options.patience,
        isolation_level=None,  # this module begins transactions itself
        check_same_thread=False,
        cached_statements=256,
        uri=True,
    )


def open_writer(options: SqliteOptions) -> sqlite3.Connection:
    """Open the file for writing; make it a store if it is new.

    Raises:
        StoreUnusable: It cannot be a store; nothing was changed.
    """
    path = options.path
    check_path(path)
    # Log and index take the mode of the database file.
    with suppress(OSError):  # SQLite meets the same error and reports it
        make_private_file(path)
    try:
        connection = connect(options)
    except sqlite3.Error as error:
        raise translate_error(path, error) from error
    try:
        synchronous = "FULL" if options.durability == "power" else "NORMAL"
        connection.execute(f"PRAGMA synchronous={synchronous}")
        _enable_incremental_vacuum(connection)
        _prepare(connection, options)
        # Deleted or overwritten data does not stay in the free parts of a page.
        connection.execute("PRAGMA secure_delete=FAST").close()
        connection.execute(f"PRAGMA wal_autocheckpoint={CHECKPOINT_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit={LOG_BYTES}")
        connection.execute("PRAGMA cache_size=-16384")
        if options.max_bytes is not None:
            (page_size,) = connection.execute("PRAGMA page_size").fetchone()
            connection.execute(f"PRAGMA max_page_count={options.max_bytes // page_size}")
    except sqlite3.Error as error:
        connection.close()
        raise translate_error(path, error) from error
    except BaseException:
        connection.close()
        raise
    return connection


def _enable_incremental_vacuum(connection: sqlite3.Connection) -> None:
    """Enable incremental vacuum in a new file, so that free pages can be returned."""
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    if not pages:
        connection.execute("PRAGMA auto_vacuum=INCREMENTAL").close()


def open_reader(options: SqliteOptions) -> sqlite3.Connection:
    """Open an existing store for reading."""
    try:
        connection = connect(options)
        connection.execute("PRAGMA query_only=ON")
    except sqlite3.Error as error:
        raise translate_error(options.path, error) from error
    return connection


def _prepare(connection: sqlite3.Connection, options: SqliteOptions) -> None:
    """Make the file a store, even if several processes try the same at once.

    The change to a write-ahead log does not wait for locks as statements do, so it is retried.
    """
    deadline = time.monotonic() + options.patience
    while True:
        try:
            is_store = _is_store_already(connection, options)
            _enable_wal(connection, options)
            if not is_store:
                _create(connection, options)
            elif _missing_columns(connection):
                _add_columns(connection)
            return
        except sqlite3.OperationalError as error:
            if error_code(error) not in BUSY or time.monotonic() >= deadline:
                raise
        time.sleep(random.uniform(0.001, 0.02))


def _is_store_already(connection: sqlite3.Connection, options: SqliteOptions) -> bool:
    # Read one state of the file: another process may be making it a store at this moment.
    connection.execute("BEGIN")
    try:
        return _is_store(connection, options)
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _is_store(connection: sqlite3.Connection, options: SqliteOptions) -> bool:
    application_id, version = _store_marks(connection)
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    path = str(options.path)
    if application_id == APPLICATION_ID and version > SCHEMA_VERSION:
        raise StoreTooNew(
            path, f"its schema version is {version}; this version supports {SCHEMA_VERSION}"
        )
    if application_id == APPLICATION_ID and version == SCHEMA_VERSION:
        return True
    if tables or application_id:
        raise NotAStore(path, "it is another program's SQLite database")
    return False


def _store_marks(connection: sqlite3.Connection) -> tuple[int, int]:
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return application_id, version


def _enable_wal(connection: sqlite3.Connection, options: SqliteOptions) -> None:
    with closing(connection.execute("PRAGMA journal_mode")) as answer:
        (mode,) = answer.fetchone()
    if mode != "wal":
        with closing(connection.execute("PRAGMA journal_mode=WAL")) as answer:
            (mode,) = answer.fetchone()
    if mode != "wal":
        why = f"its file system supports no write-ahead log, only {mode}; use a local disk"
        raise StoreFailed(str(options.path), why)


def _create(connection: sqlite3.Connection, options: SqliteOptions) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        if not _is_store(connection, options):  # unless another process was faster
            for statement in TABLES:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _missing_columns(connection: sqlite3.Connection) -> list[tuple[str, str, str]]:
    """Return the columns that a file of an earlier version lacks."""
    query = "SELECT 1 FROM pragma_table_info(?) WHERE name = ?"
    return [
        (table, name, of)
        for table, name, of in ADDED
        if connection.execute(query, (table, name)).fetchone() is None
    ]


def _add_columns(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        for table, name, of in _missing_columns(connection):  # another process may have been faster
            connection.execute(f"ALTER TABLE {table} ADD COLUMN {name} {of}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
