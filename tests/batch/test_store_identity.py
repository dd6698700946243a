"""A batch continues only with the store that has its attempts."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Unpack

import pytest
import trio

from sessionmgr import Job, run_batch
from sessionmgr.batch import Batch, BatchOptions, JobResult, StoreMismatch
from sessionmgr.model import FailureKind, RunStatus
from sessionmgr.store import MemoryStore, StoreBusy
from sessionmgr.testing.scripted_provider import Hang, Say, Step, Tool
from tests.batch.open_batch import BatchSetup, collect, job, open_batch_setup

CUT = (Tool(name="Bash", takes=9999),)
WELL = (Say(text="well"),)
JOBS = [job("a"), job("b")]


def scripts(prompt: str, attempt: int) -> tuple[Step, ...]:
    """Play a tool that does not end for the job a; the other jobs complete."""
    return CUT if prompt == "a" else WELL


def batch(setup: BatchSetup, out: Path, *jobs: Job, **how: Unpack[BatchOptions]) -> Batch:
    return run_batch(setup.manager, jobs or JOBS, out=out, **how)


async def killed(setup: BatchSetup, out: Path, after: float = 3) -> None:
    """Leave the directory of a batch as a killed batch leaves it."""
    async with batch(setup, out.with_name("left")):
        await trio.sleep(after)
        shutil.copytree(out.with_name("left"), out, ignore=shutil.ignore_patterns("lock"))


def well(prompt: str, attempt: int) -> tuple[Step, ...]:
    """Complete every job."""
    return WELL


def hang(prompt: str, attempt: int) -> tuple[Step, ...]:
    """Write something, and never end."""
    return (Say(text="x"), Hang())


async def ended(batch: Batch) -> dict[str, JobResult]:
    return {result.job: result for result in await collect(batch)}


def mark_of(out: Path) -> str:
    with closing(sqlite3.connect(out / "ledger.db")) as connection:
        ((mark,),) = connection.execute("select value from note where key = 'mark'")
    return str(mark)


async def test_a_store_is_marked_once_for_all_runs_of_a_batch(
    autojump_clock: object, tmp_path: Path
) -> None:
    marks: list[str] = []
    async with open_batch_setup(scripts=well) as setup:
        for jobs in (JOBS, [*JOBS, job("c")]):
            await ended(batch(setup, tmp_path / "out", *jobs))
            marks.append(mark_of(tmp_path / "out"))
    assert marks[0]
    assert marks[0] == marks[1]


async def test_a_killed_job_is_not_started_over_with_a_store_that_does_not_know_it(
    autojump_clock: object, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    store = MemoryStore()
    async with open_batch_setup(scripts=scripts, store=store) as setup:
        await killed(setup, out)
    before = (out / "results.jsonl").read_bytes()
    async with open_batch_setup(scripts=scripts) as setup:
        for _ in range(2):
            with pytest.raises(StoreMismatch, match=r"1 job .*--retry-from fresh") as refused:
                await collect(batch(setup, out))
            assert refused.value.jobs == 1
        assert setup.prompts() == []
    assert (out / "results.jsonl").read_bytes() == before
    async with open_batch_setup(scripts=scripts, store=store) as setup:
        results = await ended(batch(setup, out))
        assert results["a"].text == "well"
        assert setup.prompts() == [setup.prompts()[0]]
        assert "tool call was running" in setup.prompts()[0]


async def test_the_user_may_start_over_selected_jobs_only(
    autojump_clock: object, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    jobs = [job("a", *CUT), job("c", *CUT)]
    async with open_batch_setup() as setup, batch(setup, out.with_name("left"), *jobs):
        await trio.sleep(3)
        shutil.copytree(out.with_name("left"), out, ignore=shutil.ignore_patterns("lock"))
    async with open_batch_setup() as setup:
        how: BatchOptions = {"retry_from": "fresh", "only": ["a"]}
        async with batch(setup, out, *jobs, **how):
            await trio.sleep(3)
            assert len(setup.prompts()) == 1
    async with open_batch_setup() as setup:
        results = await ended(batch(setup, out, jobs[1]))
        assert setup.prompts() == []
        assert results["c"].side_effects
        assert results["c"].failure is not None
        assert "--retry-from fresh starts it over" in results["c"].failure.message


async def test_a_stopped_job_is_not_resumed_with_a_store_that_lacks_it(
    autojump_clock: object, tmp_path: Path
) -> None:
    store = MemoryStore()
    async with open_batch_setup(scripts=scripts, store=store) as setup, batch(setup, tmp_path):
        await trio.sleep(3)
    async with open_batch_setup(scripts=scripts) as setup:
        with pytest.raises(StoreMismatch):
            await collect(batch(setup, tmp_path))
        # What is not selected stops nothing.
        assert await ended(batch(setup, tmp_path, only=["b"])) == {}
        assert setup.prompts() == []
    async with open_batch_setup(scripts=scripts, store=store) as setup:
        assert (await ended(batch(setup, tmp_path)))["a"].text == "well"


async def test_completed_and_unstarted_jobs_need_no_store(
    autojump_clock: object, tmp_path: Path
) -> None:
    async with open_batch_setup(scripts=scripts) as setup:
        await collect(batch(setup, tmp_path, JOBS[1]))
    async with open_batch_setup() as setup:
        results = await ended(batch(setup, tmp_path, JOBS[1], job("c")))
        assert list(results) == ["c"]


async def test_a_recorded_attempt_that_never_started_runs_in_the_same_store(
    autojump_clock: object, tmp_path: Path
) -> None:
    """It was killed between the ledger's record and the store's."""
    store = MemoryStore()
    async with open_batch_setup(store=store) as setup:
        async with batch(setup, tmp_path / "left", job("a", Hang())):
            await trio.sleep(3)
            shutil.copytree(
                tmp_path / "left", tmp_path / "out", ignore=shutil.ignore_patterns("lock")
            )
        (session,) = await setup.manager.sessions()
        await store.remove(before=1 << 60, session_id=session.id)
    async with open_batch_setup(scripts=well, store=store) as setup:
        results = await ended(batch(setup, tmp_path / "out"))
        assert results["a"].status is RunStatus.COMPLETED


async def test_a_job_whose_session_was_removed_from_the_store_is_left_for_a_decision(
    autojump_clock: object, tmp_path: Path
) -> None:
    store = MemoryStore()
    async with open_batch_setup(scripts=scripts, store=store) as setup:
        async with batch(setup, tmp_path):
            await trio.sleep(3)
        for session in await setup.manager.sessions():
            await store.remove(before=1 << 60, session_id=session.id)
    async with open_batch_setup(scripts=scripts, store=store, lawful=False) as setup:
        begun = trio.current_time()
        result = (await ended(batch(setup, tmp_path)))["a"]
        assert trio.current_time() - begun < 1
        assert result.failure is not None
        assert result.failure.kind is FailureKind.SESSION_NOT_FOUND
        assert "--retry-from fresh starts it over" in result.failure.message
        assert setup.prompts() == []


async def test_a_job_without_tool_calls_whose_session_was_removed_starts_over(
    autojump_clock: object, tmp_path: Path
) -> None:
    store = MemoryStore()
    jobs = [Job(id="a", provider="actor", prompt="a")]
    async with open_batch_setup(scripts=hang, store=store) as setup:
        async with batch(setup, tmp_path, *jobs):
            await trio.sleep(3)
        for session in await setup.manager.sessions():
            await store.remove(before=1 << 60, session_id=session.id)
    async with open_batch_setup(scripts=well, store=store, lawful=False) as setup:
        assert (await ended(batch(setup, tmp_path, *jobs)))["a"].text == "well"
        assert setup.prompts() == ["a"]


class LockedForAWhile(MemoryStore):
    """Another process has locked it for 40 s, and each call waits for 30 s."""

    async def put_meta(self, key: str, body: bytes | None) -> None:
        if trio.current_time() < 40:
            await trio.sleep(30)
        if trio.current_time() < 40:
            raise StoreBusy("store.db")
        await super().put_meta(key, body)


async def test_a_batch_waits_for_a_locked_store_at_its_start_and_reports_it(
    autojump_clock: object, tmp_path: Path
) -> None:
    async with open_batch_setup(store=LockedForAWhile()) as setup, trio.open_nursery() as nursery:
        begun = batch(setup, tmp_path / "out", job("b"))
        nursery.start_soon(collect, begun)
        await trio.sleep(20)
        (wait,) = begun.progress().waits
        assert wait.what == "store"
        assert wait.seconds == pytest.approx(20)
    assert begun.summary().statuses == {"completed": 1}
