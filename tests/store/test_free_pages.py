"""Pruning and removal shrink the file, including one of an earlier version."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from sessionmgr.store import EventRow, SqliteStore, StoreFull, open_sqlite_store
from sessionmgr.store.rows import LeaseOwner
from sessionmgr.store.sqlite import connection as opening
from sessionmgr.store.sqlite.retention import RewriteResult, rewrite_file
from sessionmgr.testing.store_conformance.sample_records import (
    batch,
    new_session,
    numbers,
    put_blob,
)

LATER = 10_000
PIECE = b'{"type":"message_streamed","delta":"' + b"x" * 400 + b'"}'
PIECES = 4000


async def fill(store: SqliteStore) -> None:
    """Store a run that has ended, with some 2 MB of deltas."""
    await new_session(store)
    await store.append(batch(1, "run_started", run="run_a", status="running"))
    for first in range(2, PIECES + 2, 1000):
        rows = tuple(
            EventRow(seq, "run_a", "message_streamed", PIECE) for seq in range(first, first + 1000)
        )
        await store.append(replace(batch(first, "a", run="run_a"), rows=rows))
    await store.append(batch(PIECES + 2, "run_completed", run="run_a", status="completed"))


@pytest.fixture
def older(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make new files as an earlier version made them."""

    def as_before(_: sqlite3.Connection) -> None:
        pass

    monkeypatch.setattr(opening, "_enable_incremental_vacuum", as_before)


@pytest.mark.parametrize("how", ["prune", "remove"])
async def test_a_file_is_smaller_by_what_is_said(tmp_path: Path, how: str) -> None:
    path = tmp_path / "runs.db"
    async with open_sqlite_store(path) as store:
        await fill(store)
    before = path.stat().st_size
    async with open_sqlite_store(path) as store:
        done = await (store.prune if how == "prune" else store.remove)(before=LATER)
    assert done.freed > 1_500_000
    assert path.stat().st_size == before - done.freed


@pytest.mark.usefixtures("older")
async def test_a_file_of_an_earlier_version_is_written_anew_once(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    async with open_sqlite_store(path) as store:
        await fill(store)
        assert (await store.prune(before=LATER)).freed == 0
    before = path.stat().st_size
    saved = rewrite_file(path).freed
    assert path.stat().st_size == before - saved < 500_000
    assert rewrite_file(path) == RewriteResult()
    async with open_sqlite_store(path) as store:
        assert numbers(await store.events("ses_a"))[-1] == PIECES + 2
        await store.append(batch(PIECES + 3, "a"))
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA auto_vacuum").fetchone() == (2,)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.usefixtures("older")
async def test_a_file_that_is_in_use_is_not_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    async with open_sqlite_store(path) as store:
        await fill(store)
        await store.prune(before=LATER)
        await store.acquire("ses_x", LeaseOwner("boot", 1, 1), now=1, ttl=1)
        assert rewrite_file(path) == RewriteResult(why_not="another program uses it")


@pytest.mark.usefixtures("older")
async def test_a_file_for_which_the_disk_has_no_room_is_not_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "runs.db"
    async with open_sqlite_store(path) as store:
        await fill(store)
        await store.prune(before=LATER)
    monkeypatch.setattr("sessionmgr.store.sqlite.retention.ROOM_TO_REWRITE", 10**12)
    assert "MB of free disk" in str(rewrite_file(path).why_not)


async def test_a_store_that_is_full_has_room_again_when_it_is_pruned(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    async with open_sqlite_store(path, max_bytes=2_500_000) as store:
        await fill(store)
        with pytest.raises(StoreFull, match="a few MB of room"):
            await put_blob(store, b"x" * 1_000_000)
        assert (await store.prune(before=LATER)).events == PIECES
        await put_blob(store, b"y" * 500_000)
