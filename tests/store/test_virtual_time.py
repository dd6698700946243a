"""Inline, the SQL runs in virtual time, and one seed gives one log."""

import sys
from pathlib import Path

import trio
import trio.testing

from sessionmgr.store import SqliteStore, open_sqlite_store
from sessionmgr.testing.store_conformance.sample_records import SESSION, batch, new_session, numbers

ROOT = Path(__file__).parents[2]


async def test_the_clock_jumps_over_waiting(
    autojump_clock: trio.testing.MockClock, tmp_path: Path
) -> None:
    read: list[tuple[float, int]] = []

    async def write(store: SqliteStore) -> None:
        for n in range(1, 6):
            await trio.sleep(3600)
            await store.append(batch(n, "a"))

    path = tmp_path / "s.db"
    begin = trio.current_time()
    async with open_sqlite_store(path, executor="inline", poll=None) as store:
        await new_session(store)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(write, store)
            for n in range(5):
                woken = await store.wait(SESSION, after=n)
                read.append((trio.current_time() - begin, woken))
        assert numbers(await store.events(SESSION)) == [1, 2, 3, 4, 5]
    assert read == [(3600.0 * n, n) for n in range(1, 6)]


async def test_no_thread_is_started_inline(tmp_path: Path) -> None:
    program = """
import sys, threading, trio
from sessionmgr.store import open_sqlite_store
from sessionmgr.testing.store_conformance.sample_records import batch, new_session
async def main():
    async with open_sqlite_store(sys.argv[1], executor="inline") as store:
        await new_session(store)
        await store.append(batch(1, "a"))
        print(threading.active_count())
trio.run(main)
"""
    done = await trio.run_process(
        [sys.executable, "-c", program, str(tmp_path / "s.db")], cwd=ROOT, capture_stdout=True
    )
    assert done.stdout == b"1\n"


SEEDED = """
import random, sqlite3, sys, trio, trio.testing
import trio._core._run
from sessionmgr.store import open_sqlite_store
from sessionmgr.testing.store_conformance.sample_records import batch, new_session
async def keep(store, name, chance):
    await new_session(store, name)
    last = 0
    for n in range(20):
        await trio.sleep(chance.random())
        types = ["a"] * chance.randrange(1, 4)
        last = (await store.append(batch(last + 1, *types, session_id=name))).last_seq
async def main():
    chance = random.Random(7)
    trio._core._run._ALLOW_DETERMINISTIC_SCHEDULING = True
    trio._core._run._r = random.Random(7)
    async with open_sqlite_store(sys.argv[1], executor="inline", poll=None) as store:
        async with trio.open_nursery() as nursery:
            for n in range(5):
                nursery.start_soon(keep, store, f"ses_{n}", random.Random(chance.random()))
trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
for row in sqlite3.connect(sys.argv[1]).execute("SELECT * FROM events ORDER BY id"):
    print(row)
"""


async def test_one_seed_gives_one_log_in_three_processes(tmp_path: Path) -> None:
    logs: list[bytes] = []
    for n in range(3):
        done = await trio.run_process(
            [sys.executable, "-c", SEEDED, str(tmp_path / f"{n}.db")], cwd=ROOT, capture_stdout=True
        )
        logs.append(done.stdout)
    assert logs[0].count(b"\n") > 100
    assert logs[1:] == logs[:2]
