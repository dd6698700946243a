"""Data that the store has erased is no longer in its file."""

from pathlib import Path

from sessionmgr.store import Request, open_sqlite_store
from sessionmgr.store.rows import LeaseOwner

TEXT = b'{"content":"a message that only its receiver is to read"}'


async def test_what_a_request_said_is_gone_from_the_file_when_it_is_carried_out(
    tmp_path: Path,
) -> None:
    path = tmp_path / "runs.db"
    owner = LeaseOwner(boot_id="boot", pid=1, start=1)
    async with open_sqlite_store(path) as store:
        for n in range(50):
            asked = Request(request_id=f"r{n}", kind="append", target="run_1", at=0, body=TEXT)
            await store.submit(asked)
    assert TEXT in path.read_bytes()
    async with open_sqlite_store(path) as store:
        for stored in await store.requests():
            assert stored.request.body == TEXT
            assert await store.claim_request(stored.request.request_id, owner)
            await store.complete(stored.request.request_id, b"{}")
        assert await store.wait_result("r7") == b"{}"
    assert TEXT not in path.read_bytes()
