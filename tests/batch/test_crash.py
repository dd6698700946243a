"""A batch with an unwritable ledger reports it at once and leaves nothing running."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import trio

from sessionmgr import run_batch
from sessionmgr.batch import (
    AttemptSpec,
    Batch,
    BatchDown,
    InProcessHost,
    LedgerUnusable,
    ResultsUnwritable,
)
from sessionmgr.batch.results import ResultsFile
from sessionmgr.testing.scripted_provider import Hang, Say, Wait
from tests.batch.open_batch import job, open_batch_setup, results_of

END = "update of usage on attempt"


def spoil(ledger: Path, statement: str = END) -> None:
    """Make a statement on the ledger fail, as on a full disk."""
    with closing(sqlite3.connect(ledger)) as connection:
        connection.execute(
            f"create trigger full before {statement}"
            " begin select raise(abort, 'database or disk is full'); end"
        )


def mend(ledger: Path) -> None:
    """Let all statements succeed again."""
    with closing(sqlite3.connect(ledger)) as connection:
        connection.execute("drop trigger full")


async def iterated(batch: Batch, out: Path) -> None:
    async with batch as results:
        spoil(out / "ledger.db")
        async for _ in results:
            pytest.fail("an end is told that is not on record")
        pytest.fail("it was over as if all were well")


async def waited_for(batch: Batch, out: Path, statement: str = END) -> None:
    async with batch:
        spoil(out / "ledger.db", statement)
        await batch.wait()
        pytest.fail("it was over as if all were well")


async def test_a_ledger_that_takes_no_more_ends_the_batch_by_its_name(
    autojump_clock: object, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    jobs = [job("a", Wait(seconds=3), Say(text="x")), *(job(f"b{n}", Hang()) for n in range(6))]
    async with open_batch_setup() as setup:
        with pytest.raises(BatchDown, match=r"ledger\.db .* disk is full"):
            await iterated(run_batch(setup.manager, jobs, out=tmp_path), tmp_path)
        assert trio.current_time() < 3 + 10
        assert "The batch stopped because" in caplog.text
        assert setup.manager.status().running == 0


async def test_an_error_of_the_body_leaves_beside_the_crash_of_its_batch(
    autojump_clock: object, tmp_path: Path
) -> None:
    def stumble() -> None:
        raise KeyError("mine")

    jobs = [job("a", Wait(seconds=3), Say(text="x"))]
    async with open_batch_setup() as setup:
        with pytest.RaisesGroup(BatchDown, KeyError):
            async with run_batch(setup.manager, jobs, out=tmp_path):
                spoil(tmp_path / "ledger.db")
                try:
                    await trio.sleep_forever()
                finally:
                    stumble()


async def test_a_batch_does_not_wait_for_attempts_whose_beginning_could_not_be_recorded(
    autojump_clock: object, tmp_path: Path
) -> None:
    jobs = [job(name, Wait(seconds=3)) for name in "abcd"]
    ledger = tmp_path / "ledger.db"
    async with open_batch_setup() as setup:
        batch = run_batch(setup.manager, jobs, out=tmp_path, concurrency=2)
        with pytest.raises(BatchDown, match="disk is full"):
            # c and d start in one transaction, once a and b have ended.
            await waited_for(batch, tmp_path, "insert on attempt when new.job = 'd'")
        assert trio.current_time() < 3 + 10
        assert batch.summary().statuses == {"completed": 2, "not_run": 2}
        assert batch.summary().attempts_now == 2
        mend(ledger)
        again = await results_of(run_batch(setup.manager, jobs, out=tmp_path))
    assert again == dict.fromkeys("cd", "completed")


async def test_a_task_that_waits_for_the_end_gets_the_crash_of_its_batch(
    autojump_clock: object, tmp_path: Path
) -> None:
    async with open_batch_setup() as setup:
        batch = run_batch(setup.manager, [job("a", Wait(seconds=3))], out=tmp_path)
        with pytest.raises(BatchDown):
            await waited_for(batch, tmp_path)


class Reluctant(InProcessHost):
    """Takes one attempt, and crashes at the next."""

    taken = 0

    async def submit(self, work: AttemptSpec) -> None:
        self.taken += 1
        if self.taken > 1:
            raise ZeroDivisionError
        await super().submit(work)


async def test_an_unsubmitted_job_waits_for_the_next_run(
    autojump_clock: object, tmp_path: Path
) -> None:
    jobs = [job(name, Wait(seconds=30)) for name in "abc"]
    async with open_batch_setup() as setup:
        with pytest.raises(BatchDown):
            await results_of(
                run_batch(setup.manager, jobs, out=tmp_path, host=Reluctant(setup.manager))
            )
        assert trio.current_time() < 10
        again = await results_of(run_batch(setup.manager, jobs, out=tmp_path))
    assert again == dict.fromkeys("abc", "completed")


def test_the_error_of_unwritable_results_names_their_file(tmp_path: Path) -> None:
    (tmp_path / "results.jsonl.part").mkdir()
    with pytest.raises(ResultsUnwritable, match=r"cannot write .*results\.jsonl: Is a dir"):
        ResultsFile(tmp_path / "results.jsonl", tuple)


async def test_the_error_of_a_damaged_ledger_names_it(
    autojump_clock: object, tmp_path: Path
) -> None:
    async with open_batch_setup() as setup:
        (tmp_path / "ledger.db").write_bytes(b"SQLite format 3\0" + bytes(100))
        with pytest.raises(LedgerUnusable, match=r"ledger\.db"):
            await results_of(run_batch(setup.manager, [], out=tmp_path))
