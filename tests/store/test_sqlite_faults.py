"""An unusable file is named with a remedy; and nothing is overwritten."""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import trio
from msgspec.structs import replace

from sessionmgr.store import (
    EventRow,
    NotAStore,
    StoreBusy,
    StoreClosed,
    StoreDamaged,
    StoreFailed,
    StoreFull,
    StorePathInvalid,
    StoreReadOnly,
    StoreTooNew,
    StoreUnusable,
    open_sqlite_store,
)
from sessionmgr.store.sqlite.connection import SqliteOptions, open_reader
from sessionmgr.store.sqlite.error_translation import translate_error
from sessionmgr.store.sqlite.schema import SCHEMA_VERSION
from sessionmgr.testing.store_conformance.sample_records import SESSION, batch, new_session, numbers

ROOT = Path(__file__).parents[2]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.db"


async def opened(path: Path, patience: float = 30) -> None:
    async with open_sqlite_store(path, patience=patience):
        pass


async def filled(path: Path, events: int = 50) -> None:
    async with open_sqlite_store(path) as store:
        await new_session(store)
        for n in range(1, events + 1):
            rows = (EventRow(n, None, "a", bytes(1000)),)
            await store.append(replace(batch(n, "a"), rows=rows))


async def refuses(path: Path, expected: type[StoreUnusable], *words: str) -> None:
    """Expect that opening fails, names all these words, and changes nothing."""
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(expected) as caught:
        await opened(path, patience=0.2)
    assert type(caught.value) is expected
    assert caught.value.path == str(path)
    for word in (str(path), caught.value.remedy, *words):
        assert word in str(caught.value)
    assert (path.read_bytes() if path.is_file() else None) == before


async def test_a_path_that_is_a_directory(tmp_path: Path) -> None:
    await refuses(tmp_path, StorePathInvalid, "it is a directory")


async def test_a_path_in_no_directory(tmp_path: Path) -> None:
    await refuses(tmp_path / "none" / "s.db", StorePathInvalid, str(tmp_path / "none"))
    assert not (tmp_path / "none").exists()


async def test_a_path_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    await refuses(tmp_path / "file" / "s.db", StorePathInvalid)


async def test_a_path_that_is_a_pipe(path: Path) -> None:
    os.mkfifo(path)
    with trio.fail_after(60):
        await refuses(path, StorePathInvalid, "not a regular file")


@pytest.mark.parametrize("size", [1, 15, 100, 5000, 200_000])
async def test_a_file_that_is_no_database(path: Path, size: int) -> None:
    path.write_bytes((b"these are notes of mine\n" * 10_000)[:size])
    await refuses(path, NotAStore)


async def test_a_database_of_another_program(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE recipes (name)")
    await refuses(path, NotAStore, "another program's")


async def test_an_empty_file_becomes_a_store(path: Path) -> None:
    path.touch()
    await filled(path, 1)


async def test_a_newer_schema(path: Path) -> None:
    await filled(path)
    with closing(sqlite3.connect(path)) as newer:
        newer.execute(f"PRAGMA user_version={SCHEMA_VERSION + 1}")
    await refuses(path, StoreTooNew, "upgrade", str(SCHEMA_VERSION + 1))


async def test_a_truncated_file(path: Path) -> None:
    await filled(path)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)
    await refuses(path, StoreDamaged)


async def test_a_file_with_garbage_in_it_is_damaged_when_it_is_read(path: Path) -> None:
    await filled(path)
    whole = path.read_bytes()
    # The schema is left intact; all that comes after it is not.
    (root,) = _roots(path, "events")
    damaged = whole[: (root - 1) * 4096] + os.urandom(len(whole) - (root - 1) * 4096)
    path.write_bytes(damaged)
    with pytest.raises(StoreDamaged) as caught:
        async with open_sqlite_store(path) as store:
            await store.events(SESSION)
    assert str(path) in str(caught.value)
    assert path.read_bytes() == damaged


def _roots(path: Path, *tables: str) -> list[int]:
    with closing(sqlite3.connect(path)) as reader:
        query = "SELECT rootpage FROM sqlite_master WHERE name = ?"
        return [reader.execute(query, (table,)).fetchone()[0] for table in tables]


async def test_another_process_that_writes_for_too_long(path: Path) -> None:
    await filled(path, 1)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        async with open_sqlite_store(path, patience=0.1) as store:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreBusy, match="try again") as caught:
                await store.append(batch(2, "a"))
            assert caught.value.path == str(path)
            assert numbers(await store.events(SESSION)) == [1]  # reads still work
            other.execute("ROLLBACK")
            await store.append(batch(2, "a"))
            assert numbers(await store.events(SESSION)) == [1, 2]


async def test_another_process_that_makes_the_store_for_too_long(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode=WAL")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy):
            await opened(path, patience=0.1)
        other.execute("ROLLBACK")
        await opened(path)


async def test_a_full_store_raises_and_continues_when_there_is_room(path: Path) -> None:
    refused: list[str] = []
    stored = 0
    async with open_sqlite_store(path, max_bytes=400_000) as store:
        await new_session(store)
        while not refused:
            rows = (EventRow(stored + 1, None, "a", bytes(20_000)),)
            try:
                await store.append(replace(batch(stored + 1, "a"), rows=rows))
                stored += 1
            except StoreFull as error:
                refused += [error.path, str(error)]
    assert refused[0] == str(path)
    assert "free space" in refused[1]
    assert 10 <= stored <= 20
    async with open_sqlite_store(path) as store:
        assert numbers(await store.events(SESSION)) == list(range(1, stored + 1))
        await store.append(batch(stored + 1, "a"))


async def test_a_full_store_refuses_what_is_too_large_and_takes_what_is_not(path: Path) -> None:
    async with open_sqlite_store(path, max_bytes=400_000) as store:
        await new_session(store)
        large = replace(batch(1, "a"), rows=(EventRow(1, None, "a", bytes(1_000_000)),))
        with pytest.raises(StoreFull):
            await store.append(large)
        await store.append(batch(1, "a"))
        assert numbers(await store.events(SESSION)) == [1]


async def test_a_store_whose_log_was_switched_off_gets_it_back(path: Path) -> None:
    await filled(path, 1)
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("PRAGMA journal_mode=DELETE").fetchone() == ("delete",)
    await filled_further(path)
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)


async def filled_further(path: Path) -> None:
    async with open_sqlite_store(path) as store:
        await store.append(batch(2, "a"))
        assert numbers(await store.events(SESSION)) == [1, 2]


def test_a_file_that_is_nowhere_cannot_be_read(path: Path) -> None:
    with pytest.raises(StoreFailed) as caught:
        open_reader(SqliteOptions(path=path.with_name("missing") / "s.db"))
    assert "missing" in str(caught.value)


def test_errors_of_the_system_are_distinguished() -> None:
    path = Path("/nowhere/s.db")
    for code, expected in (
        (sqlite3.SQLITE_BUSY, StoreBusy),
        (sqlite3.SQLITE_PROTOCOL, StoreBusy),
        (sqlite3.SQLITE_CORRUPT, StoreDamaged),
        (sqlite3.SQLITE_NOTADB, NotAStore),
        (sqlite3.SQLITE_FULL, StoreFull),
        (sqlite3.SQLITE_READONLY, StoreReadOnly),
        (sqlite3.SQLITE_IOERR_READ, StoreFailed),
        (sqlite3.SQLITE_IOERR_WRITE, StoreFailed),
        (sqlite3.SQLITE_TOOBIG, StoreFailed),
    ):
        error = sqlite3.OperationalError("said")
        error.sqlite_errorcode = code
        found = translate_error(path, error)
        assert type(found) is expected, code
        assert str(path) in str(found)
    assert type(translate_error(path, sqlite3.ProgrammingError("said"))) is StoreFailed


async def test_a_closed_store_raises(path: Path) -> None:
    async with open_sqlite_store(path) as store:
        await new_session(store)
    with pytest.raises(StoreClosed):
        await store.events(SESSION)
    with pytest.raises(StoreClosed):
        await store.append(batch(1, "a"))


async def test_an_exception_of_the_block_leaves_it_bare(path: Path) -> None:
    with pytest.raises(KeyError, match="mine"):
        async with open_sqlite_store(path):
            raise KeyError("mine")


# --- as a user without permissions -------------------------------------------------------------


@pytest.fixture
def shared() -> Iterator[Path]:
    """Directory that any user can reach, as pytest's own are not."""
    directory = Path(tempfile.mkdtemp(prefix="sessionmgr-test-"))
    directory.chmod(0o777)
    try:
        yield directory
    finally:
        directory.chmod(0o700)
        shutil.rmtree(directory)


def unprivileged(path: Path, *limit: int) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tests.store.unprivileged_program", str(path), *map(str, limit)],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


async def test_a_read_only_file(shared: Path) -> None:
    path = shared / "s.db"
    await filled(path)
    path.chmod(0o444)
    before = path.read_bytes()
    said = unprivileged(path)
    assert said.startswith(f"{StoreReadOnly.__name__} {path}")
    assert "the file is read-only" in said
    assert path.read_bytes() == before


async def test_a_file_in_a_read_only_directory(shared: Path) -> None:
    path = shared / "s.db"
    await filled(path)
    path.chmod(0o666)
    shared.chmod(0o555)
    said = unprivileged(path)
    assert said.startswith(f"{StoreReadOnly.__name__} {path}")
    assert f"the directory {shared} is read-only" in said


def test_a_new_file_in_a_read_only_directory(shared: Path) -> None:
    shared.chmod(0o555)
    said = unprivileged(shared / "s.db")
    assert said.startswith(f"{StoreReadOnly.__name__} {shared / 's.db'}")
    assert list(shared.iterdir()) == []


def test_a_file_in_a_directory_that_may_not_be_entered(shared: Path) -> None:
    closed = shared / "closed"
    closed.mkdir(mode=0o700)
    owner_is_other = os.geteuid() == 0
    if not owner_is_other:
        closed.chmod(0o000)
    assert unprivileged(closed / "s.db").startswith(StoreReadOnly.__name__)


async def test_a_limit_on_the_size_of_files_is_a_full_disk(shared: Path) -> None:
    path = shared / "s.db"
    said = unprivileged(path, 1_000_000).splitlines()
    assert said[-1].startswith(f"{StoreFull.__name__} {path}")
    acknowledged = len(said) - 1
    assert acknowledged > 10
    async with open_sqlite_store(path) as store:
        page = await store.events("ses_a")
        # The refused one may be missing; all that were acknowledged are there.
        assert numbers(page) == list(range(1, acknowledged + 1))
