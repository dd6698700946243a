"""Several processes use one file: none is locked out, and none misses the others' changes."""

import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from functools import partial
from pathlib import Path

import trio

from sessionmgr.store import open_sqlite_store
from sessionmgr.testing.store_conformance.sample_records import SESSION, batch, new_session

ROOT = Path(__file__).parents[2]


def test_eight_processes_make_one_store_at_once_and_write_into_it(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    done = subprocess.run(
        [sys.executable, "-m", "tests.store.concurrent_open", str(path), "8", "10"],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=240,
    )
    assert (done.returncode, done.stderr) == (0, "")
    with closing(sqlite3.connect(path)) as reader:
        lasts = reader.execute("SELECT session_id, last FROM sessions ORDER BY 1").fetchall()
        assert lasts == [*((f"ses_{n}", 30) for n in range(8)), ("ses_shared", 240)]
        assert reader.execute("SELECT count(*) FROM events").fetchone() == (480,)
        # Each batch is complete: its three events are of one writer.
        torn = reader.execute(
            "SELECT session, (seq - 1) / 3, count(DISTINCT substr(body, 1, 2)) AS writers"
            " FROM events GROUP BY 1, 2 HAVING writers > 1"
        ).fetchall()
        assert torn == []


async def test_a_subscriber_wakes_within_a_quarter_second_of_another_processs_append(
    tmp_path: Path,
) -> None:
    path = tmp_path / "s.db"
    late: list[float] = []
    async with open_sqlite_store(path) as store, trio.open_nursery() as nursery:
        await new_session(store)
        neighbour: trio.Process = await nursery.start(
            partial(
                trio.run_process,
                [sys.executable, "-m", "tests.store.other_process", str(path), SESSION],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        )
        assert neighbour.stdin is not None
        assert neighbour.stdout is not None
        lines = _Lines(neighbour.stdout)
        assert await lines.next() == "ready"
        for number in range(1, 12):
            await neighbour.stdin.send_all(b"\n")
            assert await store.wait(SESSION, after=number - 1) == number
            woken = time.monotonic()
            late.append(woken - float(await lines.next()))
        await neighbour.stdin.aclose()
    # The test measures the store and not the machine: the shortest delay shows the polling
    # interval. Each append comes right after a look, so none is early by chance.
    assert min(late) <= 0.25


LOOK = """
import sqlite3, sys
from contextlib import closing
with closing(sqlite3.connect(sys.argv[1], timeout=60)) as connection:
    print(*connection.execute("SELECT count(*) FROM events").fetchone())
"""


async def test_a_store_that_is_opened_twice_here_keeps_its_log_from_other_processes(
    tmp_path: Path,
) -> None:
    # The process that believes to be the last to close the file removes the log.
    path = tmp_path / "s.db"

    async def seen() -> bytes:
        command = [sys.executable, "-c", LOOK, str(path)]
        return (await trio.run_process(command, capture_stdout=True)).stdout

    async with open_sqlite_store(path) as store:
        await new_session(store)
        await store.append(batch(1, "a"))
        async with open_sqlite_store(path):
            assert await seen() == b"1\n"
            await store.append(batch(2, "a"))
            assert await seen() == b"2\n"


class _Lines:
    """Reader of a stream by the line."""

    def __init__(self, stream: trio.abc.ReceiveStream) -> None:
        self.stream = stream
        self.rest = b""

    async def next(self) -> str:
        while b"\n" not in self.rest:
            some = await self.stream.receive_some()
            assert some, "the neighbour has ended"
            self.rest += some
        line, self.rest = self.rest.split(b"\n", 1)
        return line.decode()
