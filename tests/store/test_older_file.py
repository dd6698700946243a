"""Files of an earlier version are readable and writable."""

import sqlite3
from pathlib import Path

import trio

from sessionmgr.store import LeaseOwner, Request, open_sqlite_store
from sessionmgr.store.sqlite.schema import ADDED

OLD = ("boot", 5, 6, "another")
ME = LeaseOwner("boot", 1, 2, "me", "pid:[3]")


async def an_older_file(path: Path) -> None:
    """Make the file without the added columns, with a lease and a claimed request."""
    async with open_sqlite_store(path) as store:
        await store.submit(Request(request_id="req_1", kind="cancel", target="run_1", at=0))
    with sqlite3.connect(path) as connection:
        for table, column, _ in ADDED:
            connection.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        connection.execute(
            "INSERT INTO leases (name, fence, expires, boot_id, pid, start, owner)"
            " VALUES ('ses_1', 4, 100, ?, ?, ?, ?)",
            OLD,
        )
        connection.execute("UPDATE requests SET boot_id = ?, pid = ?, start = ?, owner = ?", OLD)
    connection.close()


async def test_an_owner_of_an_older_file_has_no_namespace(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    await an_older_file(path)
    async with open_sqlite_store(path) as store:
        (lease,) = await store.leases()
        assert lease.owner == LeaseOwner(*OLD)
        assert lease.owner.namespace == ""
        (request,) = await store.requests()
        assert request.owner == LeaseOwner(*OLD)
        taken = await store.acquire("ses_1", ME, now=101, ttl=10)
        assert (taken.fence, taken.owner) == (5, ME)
        assert await store.claim_request("req_1", ME, gone=lambda _: True)
    async with open_sqlite_store(path) as store:
        assert [each.owner for each in await store.leases()] == [ME]
        assert [each.owner for each in await store.requests()] == [ME]


async def test_many_open_an_older_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    await an_older_file(path)

    async def open_it(number: int) -> None:
        async with open_sqlite_store(path) as store:
            await store.acquire(f"lease_{number}", ME, now=0, ttl=1)

    async with trio.open_nursery() as nursery:
        for number in range(8):
            nursery.start_soon(open_it, number)
    async with open_sqlite_store(path) as store:
        assert len(await store.leases("lease_")) == 8
