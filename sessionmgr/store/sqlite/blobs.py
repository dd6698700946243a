"""SQL of `AuxiliaryStore`: blobs, snapshots, back-offs, metadata and cost totals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from sessionmgr.store.errors import IdTaken, UnknownId
from sessionmgr.store.rows import CostTotals, SnapshotRow
from sessionmgr.store.sqlite.queries import find_session

if TYPE_CHECKING:
    from collections.abc import Collection
    from sqlite3 import Connection


def put_blob(connection: Connection, sha256: str, data: bytes) -> None:
    """Store bytes under their sha256, once."""
    connection.execute("INSERT OR IGNORE INTO blobs (sha256, body) VALUES (?, ?)", (sha256, data))


def blob(connection: Connection, sha256: str) -> bytes:
    """Return the bytes of a blob."""
    found = connection.execute("SELECT body FROM blobs WHERE sha256 = ?", (sha256,)).fetchone()
    if found is None:
        raise UnknownId("blob", sha256)
    body: bytes = found[0]
    return body


def put_snapshot(connection: Connection, snapshot: SnapshotRow) -> None:
    """Store a snapshot, unless the same one is stored."""
    find_session(connection, snapshot.session_id)
    found = _snapshots(connection, "snapshot_id", snapshot.snapshot_id)
    if not found:
        connection.execute(
            "INSERT INTO snapshots (snapshot_id, session_id, run_id, at, body)"
            " VALUES (?, ?, ?, ?, ?)",
            (
                snapshot.snapshot_id,
                snapshot.session_id,
                snapshot.run_id,
                snapshot.at,
                snapshot.body,
            ),
        )
    elif found != [snapshot]:
        raise IdTaken("snapshot", snapshot.snapshot_id)


def snapshot(connection: Connection, snapshot_id: str) -> SnapshotRow:
    """Return a snapshot."""
    found = _snapshots(connection, "snapshot_id", snapshot_id)
    if not found:
        raise UnknownId("snapshot", snapshot_id)
    return found[0]


def snapshots(connection: Connection, session_id: str) -> list[SnapshotRow]:
    """Return the session's snapshots, the oldest first."""
    find_session(connection, session_id)
    return _snapshots(connection, "session_id", session_id)


def _snapshots(connection: Connection, column: str, value: str) -> list[SnapshotRow]:
    rows = connection.execute(
        "SELECT snapshot_id, session_id, run_id, at, body FROM snapshots"
        f" WHERE {column} = ? ORDER BY key",
        (value,),
    )
    return [
        SnapshotRow(snapshot_id=snapshot_id, session_id=session_id, run_id=run_id, at=at, body=body)
        for snapshot_id, session_id, run_id, at, body in rows
    ]


def put_backoff(connection: Connection, key: str, body: bytes | None) -> None:
    """Set the state of a back-off; None removes it."""
    _put(connection, "backoffs", key, body)


def backoffs(connection: Connection) -> dict[str, bytes]:
    """Return the states of all back-offs."""
    return dict(connection.execute("SELECT key, body FROM backoffs").fetchall())


def put_meta(connection: Connection, key: str, body: bytes | None) -> None:
    """Set an entry of the store's metadata; None removes it."""
    _put(connection, "meta", key, body)


def meta(connection: Connection, key: str) -> bytes | None:
    """Return an entry of the store's metadata."""
    found = connection.execute("SELECT body FROM meta WHERE key = ?", (key,)).fetchone()
    return None if found is None else bytes(found[0])


def _put(
    connection: Connection, table: Literal["backoffs", "meta"], key: str, body: bytes | None
) -> None:
    if body is None:
        connection.execute(f"DELETE FROM {table} WHERE key = ?", (key,))
    else:
        connection.execute(f"REPLACE INTO {table} (key, body) VALUES (?, ?)", (key, body))


def costs(connection: Connection, ids: Collection[str]) -> dict[str, CostTotals]:
    """Return the totals for these ids; unknown ones are left out."""
    sums: dict[str, CostTotals] = {}
    for each in ids:
        row = connection.execute(
            "SELECT count(*), sum(input), sum(cached_input), sum(cache_write), sum(output),"
            " sum(reasoning), coalesce(sum(nano_usd), 0), sum(nano_usd IS NULL) FROM ledger"
            " WHERE session = (SELECT key FROM sessions WHERE session_id = :id)"
            " OR run = (SELECT key FROM runs WHERE run_id = :id) OR provider_session_id = :id",
            {"id": each},
        ).fetchone()
        if row[0]:
            sums[each] = CostTotals(**dict(zip(CostTotals.__struct_fields__, row, strict=True)))
    return sums
