"""SQL of `LeaseStore` and `RequestStore`: leases, and requests of other processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sessionmgr.store.errors import IdTaken, LeaseLost, UnknownId
from sessionmgr.store.rows import Lease, LeaseOwner, Request, StoredRequest, without_body

if TYPE_CHECKING:
    from sqlite3 import Connection

OWNER: Final = "boot_id, pid, start, owner, namespace"
"""The columns of an owner."""


def _columns(owner: LeaseOwner) -> tuple[str, int, int, str, str]:
    return owner.boot_id, owner.pid, owner.start, owner.name, owner.namespace


def _owner(columns: list[Any]) -> LeaseOwner:
    """Decode an owner; an earlier version stored no namespace."""
    boot_id, pid, start, name, namespace = columns
    return LeaseOwner(boot_id, pid, start, name, namespace or "")


def acquire(
    connection: Connection,
    name: str,
    owner: LeaseOwner,
    now: int,
    ttl: int,
    over: Lease | None = None,
) -> Lease:
    """Acquire the lease, unless an owner other than `over` holds one: then return that one."""
    known, last, expires, *held_by = connection.execute(
        "SELECT (SELECT fence FROM sessions WHERE session_id = :name),"
        f" fence, expires, {OWNER}"
        " FROM (SELECT 1) LEFT JOIN leases ON name = :name",
        {"name": name},
    ).fetchone()
    if expires is not None:
        held = Lease(name=name, owner=_owner(held_by), fence=last, expires=expires)
        if held.owner != owner and held != over:
            return held
    fence: int = max(last or 0, known or 0) + 1
    connection.execute(
        f"REPLACE INTO leases (name, fence, expires, {OWNER}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (name, fence, now + ttl, *_columns(owner)),
    )
    if known is not None:
        connection.execute("UPDATE sessions SET fence = ? WHERE session_id = ?", (fence, name))
    return Lease(name=name, owner=owner, fence=fence, expires=now + ttl)


def renew(connection: Connection, name: str, fence: int, *, now: int, ttl: int) -> Lease:
    """Extend the lease until `now + ttl`."""
    found = connection.execute(
        f"SELECT fence, expires, {OWNER} FROM leases WHERE name = ?", (name,)
    ).fetchone()
    current, expires, *owner = found or (0, None)
    if current != fence or expires is None:
        raise LeaseLost(name, fence, current)
    connection.execute("UPDATE leases SET expires = ? WHERE name = ?", (now + ttl, name))
    return Lease(name=name, owner=_owner(owner), fence=fence, expires=now + ttl)


def release(connection: Connection, name: str, fence: int) -> None:
    """Release the lease, if it is still this one; its fence remains stored."""
    connection.execute(
        "UPDATE leases SET expires = NULL WHERE name = ? AND fence = ?", (name, fence)
    )


def leases(connection: Connection, prefix: str = "") -> list[Lease]:
    """Return the leases that are held, by name."""
    rows = connection.execute(
        f"SELECT name, fence, expires, {OWNER} FROM leases"
        " WHERE expires IS NOT NULL AND name >= ? AND name < ? ORDER BY name",
        (prefix, prefix + "\U0010ffff"),
    )
    return [
        Lease(name=name, owner=_owner(owner), fence=fence, expires=expires)
        for name, fence, expires, *owner in rows
    ]


REQUEST: Final = f"SELECT number, request_id, kind, target, at, body, result, {OWNER} FROM requests"


def submit(connection: Connection, request: Request) -> int:
    """Store a request, unless the same one is stored; return its number."""
    found = find_request(connection, request.request_id)
    if found is None:
        number = connection.execute(
            "INSERT INTO requests (request_id, kind, target, at, body) VALUES (?, ?, ?, ?, ?)",
            (request.request_id, request.kind, request.target, request.at, request.body),
        ).lastrowid
        assert number is not None
        return number
    if found.request != (request if found.result is None else without_body(request)):
        raise IdTaken("request", request.request_id)
    return found.number


def find_request(connection: Connection, request_id: str) -> StoredRequest | None:
    """Return the request, if there is one."""
    found = _requests(connection, " WHERE request_id = ?", request_id)
    return found[0] if found else None


def request(connection: Connection, request_id: str) -> StoredRequest:
    """Return the request.

    Raises:
        UnknownId: There is no such request.
    """
    found = find_request(connection, request_id)
    if found is None:
        raise UnknownId("request", request_id)
    return found


def requests(connection: Connection, *, after: int = 0, limit: int = 100) -> list[StoredRequest]:
    """Return requests that are not completed, with numbers above `after`."""
    condition = " WHERE result IS NULL AND number > ? ORDER BY number LIMIT ?"
    return _requests(connection, condition, after, limit)


def last_request(connection: Connection) -> int:
    """Return the number of the last request."""
    (number,) = connection.execute("SELECT coalesce(max(number), 0) FROM requests").fetchone()
    last: int = number
    return last


def claim_request(
    connection: Connection, request_id: str, owner: LeaseOwner, over: LeaseOwner | None
) -> LeaseOwner | None:
    """Assign the request to this owner, also if `over` has it; return its owner then.

    A completed request has no owner.
    """
    found = request(connection, request_id)
    if found.result is not None:
        return None
    if found.owner not in (None, owner, over):
        return found.owner
    connection.execute(
        "UPDATE requests SET boot_id = ?, pid = ?, start = ?, owner = ?, namespace = ?"
        " WHERE number = ?",
        (*_columns(owner), found.number),
    )
    return owner


def complete(connection: Connection, request_id: str, result: bytes) -> None:
    """Record the request's outcome, if it has none yet, and erase its body."""
    found = request(connection, request_id)
    connection.execute(
        "UPDATE requests SET result = coalesce(result, ?), body = x'' WHERE number = ?",
        (result, found.number),
    )


def _requests(connection: Connection, condition: str, *values: str | int) -> list[StoredRequest]:
    return [
        StoredRequest(
            number=number,
            request=Request(request_id=request_id, kind=kind, target=target, at=at, body=body),
            owner=None if owner[0] is None else _owner(owner),
            result=result,
        )
        for number, request_id, kind, target, at, body, result, *owner in connection.execute(
            REQUEST + condition, values
        )
    ]
