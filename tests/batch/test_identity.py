"""The identity of a job across runs of its batch, and the results that a run may replace."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import trio

from sessionmgr import Job, PermissionMode, run_batch
from sessionmgr.batch import JobsInvalid
from sessionmgr.model import FailureKind
from sessionmgr.testing.scripted_provider import Fail, Hang, Say, Step, Use, Wait
from tests.batch.open_batch import collect, job, open_batch_setup, results_of


def statuses(out: Path) -> dict[str, str]:
    """Return the statuses in `results.jsonl` by job; each job has one line."""
    found = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    assert len({each["job"] for each in found}) == len(found)
    return {each["job"]: each["status"] for each in found}


async def test_a_raised_limit_reruns_the_jobs_that_it_ended_and_no_others(
    autojump_clock: object, tmp_path: Path
) -> None:
    async with open_batch_setup() as setup:
        tight = [job(id, prompt=p, deadline=2) for id, p in (("ok", "a"), ("slow", SLOW))]
        first = await results_of(run_batch(setup.manager, tight, out=tmp_path))
        assert first == {"ok": "completed", "slow": "timed_out"}
        loose = [job(id, prompt=p, deadline=20) for id, p in (("ok", "a"), ("slow", SLOW))]
        again = await results_of(run_batch(setup.manager, loose, out=tmp_path))
        assert again == {"slow": "completed"}
    assert statuses(tmp_path) == {"ok": "completed", "slow": "completed"}


SLOW = job("-", Wait(seconds=5), Say(text="done")).prompt


async def test_a_raised_limit_applies_to_continued_jobs(
    autojump_clock: object, tmp_path: Path
) -> None:
    def scripts(prompt: str, attempt: int) -> tuple[Step, ...]:
        return (Say(text="x"), Wait(seconds=30)) if attempt == 0 else (Wait(seconds=10),)

    async with open_batch_setup(scripts=scripts) as setup:
        async with run_batch(setup.manager, [job("a", deadline=4)], out=tmp_path):
            await trio.sleep(3)
        again = await results_of(run_batch(setup.manager, [job("a", deadline=40)], out=tmp_path))
        assert again == {"a": "completed"}


@pytest.mark.parametrize(
    "changed",
    [job("a", metadata={"k": 1}), job("a", permission_mode=PermissionMode.FULL_AUTO)],
    ids=["metadata", "permission_mode"],
)
async def test_limits_and_labels_of_a_completed_job_may_change(
    autojump_clock: object, tmp_path: Path, changed: Job
) -> None:
    async with open_batch_setup() as setup:
        await collect(run_batch(setup.manager, [job("a")], out=tmp_path))
        assert await collect(run_batch(setup.manager, [changed], out=tmp_path)) == []
        assert setup.prompts() == ["a"]


async def test_another_prompt_of_a_job_that_failed_is_simply_run(
    autojump_clock: object, tmp_path: Path
) -> None:
    async with open_batch_setup() as setup:
        await collect(run_batch(setup.manager, [job("a", Fail()), job("b")], out=tmp_path))
        again = await collect(run_batch(setup.manager, [job("a"), job("b")], out=tmp_path))
        assert [(each.job, each.attempt, each.resumed_from) for each in again] == [("a", 2, None)]
    assert statuses(tmp_path) == {"a": "completed", "b": "completed"}


async def test_another_prompt_of_a_job_that_was_stopped_begins_a_session_of_its_own(
    autojump_clock: object, tmp_path: Path
) -> None:
    async with open_batch_setup() as setup:
        cut = job("a", Say(text="x"), Hang())
        async with run_batch(setup.manager, [cut], out=tmp_path):
            await trio.sleep(3)
        (result,) = await collect(run_batch(setup.manager, [job("a")], out=tmp_path))
        assert (result.resumed_from, result.text) == (None, "a")


async def test_a_change_of_a_job_that_is_not_selected_stops_nothing(
    autojump_clock: object, tmp_path: Path
) -> None:
    async with open_batch_setup() as setup:
        await collect(run_batch(setup.manager, [job("a"), job("b", Fail())], out=tmp_path))
        now = [job("a", prompt="other"), job("b")]
        part = run_batch(setup.manager, now, out=tmp_path, only=["b"])
        assert await results_of(part) == {"b": "completed"}
        assert part.summary().statuses == {"completed": 2}
        assert part.summary().all_completed
        with pytest.raises(JobsInvalid, match='prompt was "a" and is "other"'):
            await collect(run_batch(setup.manager, now, out=tmp_path))
    assert statuses(tmp_path) == {"a": "completed", "b": "completed"}


async def test_force_affects_only_selected_jobs(autojump_clock: object, tmp_path: Path) -> None:
    async with open_batch_setup() as setup:
        await collect(run_batch(setup.manager, [job(id) for id in "abc"], out=tmp_path))
        now = [job(id, prompt=f"new {id}") for id in "abc"]
        part = run_batch(setup.manager, now, out=tmp_path, only=["b"], force=True)
        assert await results_of(part) == {"b": "completed"}
        assert part.summary().statuses == {"completed": 3}
        assert setup.prompts()[3:] == ["new b"]
    assert statuses(tmp_path) == dict.fromkeys("abc", "completed")


async def test_a_job_that_force_has_not_reached_is_unchanged(
    autojump_clock: object, tmp_path: Path
) -> None:
    async with open_batch_setup() as setup:
        jobs = [job("a"), job("b"), job("c", Fail())]
        await collect(run_batch(setup.manager, jobs, out=tmp_path))
        now = [job("a", Hang()), job("b", prompt="new b"), job("c", Fail())]
        batch = run_batch(setup.manager, now, out=tmp_path, force=True, concurrency=1)
        async with batch:
            await trio.sleep(3)
        assert batch.summary().statuses == {"cancelled": 1, "completed": 1, "failed": 1}
        assert batch.summary().failures == {"provider_error": 1}
        assert statuses(tmp_path) == {"a": "cancelled", "b": "completed", "c": "failed"}
        with pytest.raises(JobsInvalid, match="job 'b' has changed"):
            await collect(run_batch(setup.manager, now, out=tmp_path))
        back = [job("a"), job("b"), job("c")]
        assert await results_of(run_batch(setup.manager, back, out=tmp_path)) == {
            "a": "completed",
            "c": "completed",
        }
        assert "new b" not in setup.prompts()


async def test_a_result_stays_until_the_next_one_exists(
    autojump_clock: object, tmp_path: Path
) -> None:
    def scripts(prompt: str, attempt: int) -> tuple[Step, ...]:
        return (Fail(),) if attempt == 0 else (Wait(seconds=5), Say(text="x"))

    async with open_batch_setup(scripts=scripts) as setup:
        await collect(run_batch(setup.manager, [job("a")], out=tmp_path))
        async with run_batch(setup.manager, [job("a")], out=tmp_path) as results:
            await trio.sleep(3)
            assert statuses(tmp_path) == {"a": "failed"}
            async for _ in results:
                assert statuses(tmp_path) == {"a": "completed"}


async def test_a_directory_of_an_older_version_still_works(
    autojump_clock: object, tmp_path: Path
) -> None:
    async with open_batch_setup() as setup:
        jobs = [job("a", deadline=5), job("b", Fail())]
        await collect(run_batch(setup.manager, jobs, out=tmp_path))
        with closing(sqlite3.connect(tmp_path / "ledger.db")) as ledger, ledger:
            ledger.execute("drop table standing")  # absent from those versions,
            digests = b'{"prompt": "0"}'  # which fingerprinted all fields
            ledger.execute("update job set fingerprint = 'of all fields'")
            ledger.execute("update job set digests = ? where id = 'b'", (digests,))
        jobs = [job("a", deadline=50), job("b")]
        assert await results_of(run_batch(setup.manager, jobs, out=tmp_path)) == {"b": "completed"}


async def test_work_started_by_force_continues_after_a_kill_without_it(
    autojump_clock: object, tmp_path: Path
) -> None:
    out, disk = tmp_path / "out", tmp_path / "disk"
    async with open_batch_setup() as setup:
        await collect(run_batch(setup.manager, [job("a")], out=out))
        now = [job("a", Wait(seconds=5), Say(text="new"))]
        async with run_batch(setup.manager, now, out=out, force=True):
            await trio.sleep(3)
            shutil.copytree(out, disk, ignore=shutil.ignore_patterns("*-shm"))
        assert statuses(disk) == {"a": "completed"}  # as it was before
        (result,) = await collect(run_batch(setup.manager, now, out=disk))
        assert (result.status, result.attempt) == ("completed", 3)


async def test_other_work_has_the_whole_budget_of_its_job(
    autojump_clock: object, tmp_path: Path
) -> None:
    def scripts(prompt: str, attempt: int) -> tuple[Step, ...]:
        overloaded = Fail(kind=FailureKind.OVERLOADED, retryable=True)
        return (Use(output=1, usd=0.75), *((overloaded,) if prompt == "new" else ()))

    async with open_batch_setup(scripts=scripts) as setup:
        await collect(run_batch(setup.manager, [job("a", budget_usd=0.5)], out=tmp_path))
        now = [job("a", prompt="new", budget_usd=1)]
        (result,) = await collect(run_batch(setup.manager, now, out=tmp_path, force=True))
        assert setup.prompts() == ["a", "new", "new"]
        assert result.failure is not None
        assert "$1.5000 of budget_usd 1 was used by 2 attempts" in result.failure.message


async def test_an_exhausted_budget_keeps_the_result_of_a_job(
    autojump_clock: object, tmp_path: Path
) -> None:
    async with open_batch_setup() as setup:
        jobs = [job("a", Use(output=1, usd=0.75), Fail(message="oh no"), budget_usd=0.5)]
        (first,) = await collect(run_batch(setup.manager, jobs, out=tmp_path))
        (again,) = await collect(run_batch(setup.manager, jobs, out=tmp_path))
        assert (again.id, again.attempt, len(setup.prompts())) == (first.id, 1, 1)
        assert again.failure is not None
        assert "raise budget_usd to continue (the last attempt failed:" in again.failure.message
