"""A command that waits for the store says so, and why, while it waits."""

import json
import re
import sqlite3
import subprocess
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from sessionmgr.cli.terminal.store_wait import FIRST, StoreWaitReporter, run_reporting_waits
from sessionmgr.store import StoreFull, is_locked
from sessionmgr.testing.faulty_store import ANY, FaultyStore
from sessionmgr.testing.scripted_provider import Say
from tests.cli.command import COMMAND, environment, run_command
from tests.cli.stored_runs import store_runs
from tests.manager.harness import open_harness

WAITS = "waiting for the store: locked by another process, or its disk is slow"


@contextmanager
def locked(store: Path) -> Generator[sqlite3.Connection]:
    """Hold a store's lock in another connection until the end of the block, or earlier."""
    with closing(sqlite3.connect(store, timeout=60, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield other


def seconds_of(said: str, pattern: str) -> float:
    """Return the seconds that a line names; the line has that pattern."""
    found = re.search(pattern, said)
    assert found is not None, said
    return float(found[1])


def test_run_says_that_the_store_is_locked_and_goes_on_when_it_is_free(tmp_path: Path) -> None:
    words = ("run", "-p", "shell", "--store", "runs.db", "echo done")
    assert run_command(*words, cwd=tmp_path, env=environment(tmp_path)).returncode == 0
    with (
        locked(tmp_path / "runs.db") as other,
        subprocess.Popen(
            [*COMMAND, *words],
            cwd=tmp_path,
            env=environment(tmp_path),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        ) as process,
    ):
        assert process.stderr is not None
        said = process.stderr.readline()
        other.execute("ROLLBACK")
        out, _ = process.communicate(timeout=60)
    so_far = r"\((\d+(?:\.\d)?) s so far, up to 1 min 00 s\)"
    why = r"locked by another process \(runs\.db\)"
    # The first report comes after two seconds, on a busy machine later.
    assert seconds_of(said, rf"^sessionmgr: waiting for the store {so_far}: {why}\n$") >= FIRST
    assert (process.returncode, out) == (0, "done\n")


def test_the_progress_of_a_batch_says_that_the_store_is_locked(tmp_path: Path) -> None:
    (tmp_path / "jobs.jsonl").write_text(json.dumps({"id": "a", "prompt": "echo"}) + "\n")
    words = ("batch", "jobs.jsonl", "-p", "shell", "--store", "runs.db")
    store_runs(tmp_path / "runs.db")  # the next start has no leftover run to record
    with (
        locked(tmp_path / "runs.db") as other,
        subprocess.Popen(
            [*COMMAND, *words],
            cwd=tmp_path,
            env=environment(tmp_path),
            stderr=subprocess.PIPE,
            encoding="utf-8",
        ) as process,
    ):
        assert process.stderr is not None
        said = process.stderr.readline()
        while WAITS not in said:  # after a slow start, progress reports that nothing has changed
            assert said
            said = process.stderr.readline()
        other.execute("ROLLBACK")
        process.communicate(timeout=60)
    assert seconds_of(said, rf"{WAITS} \((\d+(?:\.\d)?) s so far\)") >= FIRST
    assert process.returncode == 0


def test_a_lock_is_seen_without_waiting_for_it(tmp_path: Path) -> None:
    path = tmp_path / "some.db"
    assert not is_locked(path)
    assert not path.exists()
    with closing(sqlite3.connect(path)) as made:
        made.execute("CREATE TABLE t (x)")
    assert not is_locked(path)
    with locked(path):
        assert is_locked(path)
    assert not is_locked(path)


async def test_what_a_run_waits_for_is_said_ever_more_rarely(
    autojump_clock: MockClock, capsys: pytest.CaptureFixture[str]
) -> None:
    store = FaultyStore()
    async with open_harness(store=store) as house:
        wait = StoreWaitReporter(Path("runs.db"))
        wait.attach(house.manager)

        async def work() -> int:
            run = await house.start(Say(text="first"))
            await run.result()
            store.raises += [(ANY, StoreFull("runs.db", OSError("disk full")))] * 300
            again = await house.start(Say(text="second"))
            await again.result()
            return 7

        assert await run_reporting_waits(wait, work) == 7
    lines = capsys.readouterr().err.splitlines()
    full = "runs.db has no room to grow (disk full); free space on its disk"
    told = [line.partition(f": {full}")[0] for line in lines]
    assert told == [
        f"sessionmgr: waiting for the store ({n} s so far, up to 1 min 00 s)"
        for n in ("2.0", "4.0", "8.0", "16")
    ]


async def test_nothing_is_said_of_a_store_that_answers(
    autojump_clock: MockClock, capsys: pytest.CaptureFixture[str]
) -> None:
    async with open_harness() as house:
        wait = StoreWaitReporter(Path("runs.db"))
        wait.attach(house.manager)

        async def work() -> int:
            await trio.sleep(100)
            run = await house.start(Say(text="x"))
            await run.result()
            return 0

        await run_reporting_waits(wait, work)
    assert capsys.readouterr().err == ""


async def test_an_error_comes_out_as_it_is() -> None:
    async def work() -> int:
        await trio.lowlevel.checkpoint()
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        await run_reporting_waits(StoreWaitReporter(Path("runs.db")), work)
