"""Leases, and requests from other processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessionmgr.errors import IdTaken, LeaseHeld, LeaseLost, UnknownId
from sessionmgr.store.row import Lease, Owner, Request, StoredRequest

if TYPE_CHECKING:
    from sqlite3 import Connection


def acquire(
    connection: Connection, name: str, owner: Owner, now: int, ttl: int, over: int | None
) -> Lease:
    """Take the lease; also from a living owner whose fence is `over`."""
    known, last, expires, *held_by = connection.execute(
        "SELECT (SELECT fence FROM sessions WHERE session_id = :name),"
        " fence, expires, boot_id, pid, start, owner"
        " FROM (SELECT 1) LEFT JOIN leases ON name = :name",
        {"name": name},
    ).fetchone()
    if expires is not None and expires > now and last != over and Owner(*held_by) != owner:
        raise LeaseHeld(name, Owner(*held_by), last, expires)
    fence: int = max(last or 0, known or 0) + 1
    connection.execute(
        "REPLACE INTO leases (name, fence, expires, boot_id, pid, start, owner)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (name, fence, now + ttl, owner.boot_id, owner.pid, owner.start, owner.name),
    )
    if known is not None:
        connection.execute("UPDATE sessions SET fence = ? WHERE session_id = ?", (fence, name))
    return Lease(name=name, owner=owner, fence=fence, expires=now + ttl)


def renew(connection: Connection, name: str, fence: int, now: int, ttl: int) -> Lease:
    """Hold the lease until `now + ttl`."""
    found = connection.execute(
        "SELECT fence, expires, boot_id, pid, start, owner FROM leases WHERE name = ?", (name,)
    ).fetchone()
    current, expires, *owner = found or (0, None)
    if current != fence or expires is None:
        raise LeaseLost(name, fence, current)
    connection.execute("UPDATE leases SET expires = ? WHERE name = ?", (now + ttl, name))
    return Lease(name=name, owner=Owner(*owner), fence=fence, expires=now + ttl)


def release(connection: Connection, name: str, fence: int) -> None:
    """Give the lease back, if it is still this one; its fence stays known."""
    connection.execute(
        "UPDATE leases SET expires = NULL WHERE name = ? AND fence = ?", (name, fence)
    )


def leases(connection: Connection, prefix: str) -> list[Lease]:
    """Return the leases that are held, by name."""
    rows = connection.execute(
        "SELECT name, fence, expires, boot_id, pid, start, owner FROM leases"
        " WHERE expires IS NOT NULL AND name >= ? AND name < ? ORDER BY name",
        (prefix, prefix + "\U0010ffff"),
    )
    return [
        Lease(name=name, owner=Owner(*owner), fence=fence, expires=expires)
        for name, fence, expires, *owner in rows
    ]


REQUEST = (
    "SELECT number, request_id, kind, target, at, body, result, boot_id, pid, start, owner"
    " FROM requests"
)


def submit(connection: Connection, request: Request) -> int:
    """Store a request, unless the very same is there; return its number."""
    found = find_request(connection, request.request_id)
    if found is None:
        number = connection.execute(
            "INSERT INTO requests (request_id, kind, target, at, body) VALUES (?, ?, ?, ?, ?)",
            (request.request_id, request.kind, request.target, request.at, request.body),
        ).lastrowid
        assert number is not None
        return number
    if found.request != request:
        raise IdTaken("request", request.request_id)
    return found.number


def find_request(connection: Connection, request_id: str) -> StoredRequest | None:
    """Return the request, if there is one."""
    found = _requests(connection, " WHERE request_id = ?", request_id)
    return found[0] if found else None


def request(connection: Connection, request_id: str) -> StoredRequest:
    """Return the request.

    Raises:
        UnknownId: There is none.
    """
    found = find_request(connection, request_id)
    if found is None:
        raise UnknownId("request", request_id)
    return found


def requests(connection: Connection, after: int, limit: int) -> list[StoredRequest]:
    """Return requests that nobody has completed, with numbers above `after`."""
    condition = " WHERE result IS NULL AND number > ? ORDER BY number LIMIT ?"
    return _requests(connection, condition, after, limit)


def last_request(connection: Connection) -> int:
    """Return the number of the last request."""
    (number,) = connection.execute("SELECT coalesce(max(number), 0) FROM requests").fetchone()
    last: int = number
    return last


def take(connection: Connection, request_id: str, owner: Owner, over: Owner | None) -> Owner | None:
    """Give the request to this owner, also out of the hands of `over`; return who has it then.

    Nobody has a request that is completed.
    """
    found = request(connection, request_id)
    if found.result is not None:
        return None
    if found.owner not in (None, owner, over):
        return found.owner
    connection.execute(
        "UPDATE requests SET boot_id = ?, pid = ?, start = ?, owner = ? WHERE number = ?",
        (owner.boot_id, owner.pid, owner.start, owner.name, found.number),
    )
    return owner


def complete(connection: Connection, request_id: str, result: bytes) -> None:
    """Note what came of the request, if nothing has come of it yet."""
    found = request(connection, request_id)
    connection.execute(
        "UPDATE requests SET result = coalesce(result, ?) WHERE number = ?", (result, found.number)
    )


def _requests(connection: Connection, condition: str, *values: str | int) -> list[StoredRequest]:
    return [
        StoredRequest(
            number=number,
            request=Request(request_id=request_id, kind=kind, target=target, at=at, body=body),
            owner=None if owner[0] is None else Owner(*owner),
            result=result,
        )
        for number, request_id, kind, target, at, body, result, *owner in connection.execute(
            REQUEST + condition, values
        )
    ]
