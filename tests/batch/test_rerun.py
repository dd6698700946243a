"""Reruns of a batch: completed jobs stay, and the others run."""

import json
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Unpack

import pytest
import trio

from sessionmgr import Job, run_batch
from sessionmgr.batch import BatchBusy, BatchOptions, JobsInvalid, dry_run
from sessionmgr.testing.scripted_provider import Fail, Hang, Say, Step, Wait
from tests.batch.open_batch import BatchSetup, collect, job, open_batch_setup, results_of


def recorded(out: Path) -> list[str]:
    """Return the whole contents of a batch's ledger."""
    with closing(sqlite3.connect(out / "ledger.db")) as connection:
        return list(connection.iterdump())


def lines(out: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]


async def test_completed_jobs_do_not_run_again(autojump_clock: object, tmp_path: Path) -> None:
    async with open_batch_setup() as setup:
        first = await results_of(run_batch(setup.manager, [job("a"), job("b")], out=tmp_path))
        again = await results_of(
            run_batch(setup.manager, [job("a"), job("b"), job("c")], out=tmp_path)
        )
        assert (sorted(first), sorted(again)) == (["a", "b"], ["c"])
        assert (sorted(setup.prompts()[:2]), setup.prompts()[2:]) == (["a", "b"], ["c"])
    assert sorted(str(line["job"]) for line in lines(tmp_path)) == ["a", "b", "c"]


async def test_failed_jobs_run_again(autojump_clock: object, tmp_path: Path) -> None:
    def scripts(prompt: str, attempt: int) -> tuple[Step, ...]:
        return (Say(text=prompt),) if attempt else (Fail(),)

    async with open_batch_setup(scripts=scripts) as setup:
        assert await results_of(run_batch(setup.manager, [job("a")], out=tmp_path)) == {
            "a": "failed"
        }
        (again,) = await collect(run_batch(setup.manager, [job("a")], out=tmp_path))
        assert (again.status, again.attempt) == ("completed", 2)
    assert [line["status"] for line in lines(tmp_path)] == ["completed"]


async def test_failed_jobs_can_be_kept(autojump_clock: object, tmp_path: Path) -> None:
    async with open_batch_setup() as setup:
        jobs = [job("a", Fail())]
        await collect(run_batch(setup.manager, jobs, out=tmp_path))
        batch = run_batch(setup.manager, jobs, out=tmp_path, keep_failed=True)
        assert await results_of(batch) == {}
        assert batch.summary().statuses == {"failed": 1}
    assert [line["status"] for line in lines(tmp_path)] == ["failed"]


async def test_an_interrupted_job_continues_in_its_session(
    autojump_clock: object, tmp_path: Path
) -> None:
    def scripts(prompt: str, attempt: int) -> tuple[Step, ...]:
        return (Say(text="more"),) if prompt == "continue" else (Say(text="some"), Hang())

    async with open_batch_setup(scripts=scripts) as setup:
        async with run_batch(setup.manager, [job("a")], out=tmp_path):
            await trio.sleep(3)
        (cut,) = lines(tmp_path)
        assert (cut["status"], cut["attempt"]) == ("cancelled", 1)
        (result,) = await collect(run_batch(setup.manager, [job("a")], out=tmp_path))
        assert (result.text, result.attempt) == ("more", 2)
        assert (result.resumed_from, result.session_id) == (cut["id"], cut["session_id"])
        assert setup.prompts() == ["a", "continue"]


async def test_a_job_that_has_changed_is_refused(autojump_clock: object, tmp_path: Path) -> None:
    async with open_batch_setup() as setup:
        await collect(run_batch(setup.manager, [job("a")], out=tmp_path))
        with pytest.raises(JobsInvalid) as refused:
            await collect(run_batch(setup.manager, [job("a", prompt="b")], out=tmp_path))
        assert str(refused.value) == (
            "job 1: prompt: job 'a' has changed since it was run "
            '(prompt was "a" and is "b"); change it back, give it another id, or run it '
            "again (--force --only a)"
        )
        await collect(run_batch(setup.manager, [job("a", prompt="b")], out=tmp_path, force=True))
        assert setup.prompts() == ["a", "b"]
    (line,) = lines(tmp_path)
    assert (line["text"], line["attempt"]) == ("b", 2)


async def test_a_job_that_was_never_run_may_change(autojump_clock: object, tmp_path: Path) -> None:
    async with open_batch_setup() as setup:
        await collect(run_batch(setup.manager, [job("a")], out=tmp_path, limit=0))
        await collect(run_batch(setup.manager, [job("a", prompt="b")], out=tmp_path))
        assert setup.prompts() == ["b"]


async def test_only_some_may_be_done_at_a_time(autojump_clock: object, tmp_path: Path) -> None:
    async with open_batch_setup() as setup:
        jobs = [job(f"{kind}{n}") for kind in "ab" for n in range(3)]
        first = run_batch(setup.manager, jobs, out=tmp_path, only=["a*"], skip=["*1"], limit=1)
        assert list(await results_of(first)) == ["a0"]
        assert first.summary().statuses == {"completed": 1, "not_run": 5}
        second = run_batch(setup.manager, jobs, out=tmp_path, only=["a*"], skip=["*1"], limit=1)
        assert list(await results_of(second)) == ["a2"]
        rest = await results_of(run_batch(setup.manager, jobs, out=tmp_path))
        assert sorted(rest) == ["a1", "b0", "b1", "b2"]


async def test_an_unselected_job_keeps_its_result(autojump_clock: object, tmp_path: Path) -> None:
    async with open_batch_setup() as setup:
        jobs = [job("a", Fail()), job("b", Fail()), job("c")]
        await collect(run_batch(setup.manager, jobs, out=tmp_path))
        part = run_batch(setup.manager, jobs, out=tmp_path, only=["a"])
        assert list(await results_of(part)) == ["a"]
        assert part.summary().statuses == {"completed": 1, "failed": 2}
        lines = (tmp_path / "results.jsonl").read_text().splitlines()
        assert sorted(json.loads(each)["job"] for each in lines) == ["a", "b", "c"]
        none = run_batch(setup.manager, jobs, out=tmp_path, limit=0)
        assert await results_of(none) == {}
        assert none.summary().statuses == {"completed": 1, "failed": 2}


async def test_the_result_of_a_job_that_is_in_the_file_no_more_stays(
    autojump_clock: object, tmp_path: Path
) -> None:
    async with open_batch_setup() as setup:
        jobs = [job("a"), job("b", Fail()), job("c")]
        await collect(run_batch(setup.manager, jobs, out=tmp_path))
        again = run_batch(setup.manager, jobs[:1], out=tmp_path)
        await collect(again)
    lines = (tmp_path / "results.jsonl").read_text().splitlines()
    assert sorted(json.loads(each)["job"] for each in lines) == ["a", "b", "c"]
    assert again.summary().statuses == {"completed": 1}


def names_in(directory: Path) -> list[str]:
    return sorted(each.name for each in directory.iterdir())


async def test_a_batch_that_was_refused_leaves_nothing(
    autojump_clock: object, tmp_path: Path
) -> None:
    async with open_batch_setup() as setup:
        with pytest.raises(JobsInvalid):
            await collect(run_batch(setup.manager, [job("a", cwd="/no")], out=tmp_path / "x/y"))
        assert names_in(tmp_path) == []
        await collect(run_batch(setup.manager, [job("a")], out=tmp_path / "x/y"))
        with pytest.raises(JobsInvalid):
            await collect(run_batch(setup.manager, [job("b", cwd="/no")], out=tmp_path / "x/y"))
        assert (tmp_path / "x/y/ledger.db").exists()


async def test_a_batch_is_entered_once(autojump_clock: object) -> None:
    async with open_batch_setup() as setup:
        batch = run_batch(setup.manager, [job("a")])
        await collect(batch)
        with pytest.raises(RuntimeError, match="runs only once"):
            await collect(batch)


async def test_one_batch_is_worked_on_by_one(autojump_clock: object, tmp_path: Path) -> None:
    async with (
        open_batch_setup() as setup,
        run_batch(setup.manager, [job("a", Hang())], out=tmp_path),
    ):
        with pytest.raises(BatchBusy, match="process"):
            await collect(run_batch(setup.manager, [job("a", Hang())], out=tmp_path))


async def test_a_summary_is_left_behind(autojump_clock: object, tmp_path: Path) -> None:
    async with open_batch_setup() as setup:
        jobs = [job("a", Wait(seconds=3)), job("b", Fail())]
        batch = run_batch(setup.manager, jobs, out=tmp_path)
        await collect(batch)
    found = json.loads((tmp_path / "summary.json").read_text())
    assert found["statuses"] == {"completed": 1, "failed": 1}
    assert found["failures"] == {"provider_error": 1}
    assert (found["jobs"], found["attempts"], found["batch"]) == (2, 2, batch.id)
    assert 3 <= found["duration"] < 4


async def test_a_batch_keeps_its_id(autojump_clock: object, tmp_path: Path) -> None:
    async with open_batch_setup() as setup:
        first = run_batch(setup.manager, [job("a")], out=tmp_path)
        await collect(first)
        second = run_batch(setup.manager, [job("a")], out=tmp_path)
        await collect(second)
        assert first.id == second.id != ""


async def test_a_dry_run_reports_and_changes_nothing(
    autojump_clock: object, tmp_path: Path
) -> None:
    async with open_batch_setup() as setup:
        cut = [job("done"), job("cut", Say(text="x"), Hang())]
        async with run_batch(setup.manager, cut, out=tmp_path):
            await trio.sleep(3)
        before = (tmp_path / "results.jsonl").read_bytes(), recorded(tmp_path)
        asked = len(setup.prompts())
        jobs = [*cut, job("new", require=("steer",)), job("later")]
        async with dry_run(setup.manager, jobs, out=tmp_path, limit=2) as planned:
            found = {each.job: each async for each in planned}
        assert {name: each.action for name, each in found.items()} == {
            "done": "done",
            "cut": "resume",
            "new": "run",
            "later": "left",
        }
        negotiation, permission = found["new"].negotiation, found["new"].permission
        assert negotiation is not None
        assert permission is not None
        assert (list(negotiation.granted), permission.asked) == (["steer"], "default")
        assert ((tmp_path / "results.jsonl").read_bytes(), recorded(tmp_path)) == before
        assert len(setup.prompts()) == asked
        assert "new" in await results_of(run_batch(setup.manager, jobs, out=tmp_path, limit=2))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="it lists open files in /proc")
async def test_a_dry_run_leaves_no_file_open(autojump_clock: object, tmp_path: Path) -> None:
    async with open_batch_setup() as setup:
        await collect(run_batch(setup.manager, [job("a")], out=tmp_path))
        async with dry_run(setup.manager, [job("a")], out=tmp_path) as planned:
            assert [each.action async for each in planned] == ["done"]
        assert open_below(tmp_path) == []


def open_below(place: Path) -> list[str]:
    found: list[str] = []
    for each in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the listing itself
            found.append(str(each.readlink()))
    return [each for each in found if each.startswith(str(place))]


async def test_a_dry_run_makes_no_directory(autojump_clock: object, tmp_path: Path) -> None:
    async with open_batch_setup() as setup:
        async with dry_run(setup.manager, [job("a")], out=tmp_path / "out") as planned:
            assert [each.action async for each in planned] == ["run"]
        assert not (tmp_path / "out").exists()


async def test_a_dry_run_complains_like_a_run(autojump_clock: object) -> None:
    wrong = [job("a"), Job(id="b", prompt="x")]
    async with open_batch_setup() as setup, dry_run(setup.manager, wrong) as planned:
        assert (await anext(planned)).job == "a"
        with pytest.raises(JobsInvalid, match='job 2: missing "provider"'):
            await anext(planned)


async def test_jobs_that_the_same_call_would_run_are_counted(
    autojump_clock: object, tmp_path: Path
) -> None:
    jobs = [job("fine", Say(text="x")), job("bad", Fail()), job("later", Say(text="x"))]

    async def left(setup: BatchSetup, **how: Unpack[BatchOptions]) -> int:
        batch = run_batch(setup.manager, jobs, out=tmp_path, **how)
        await collect(batch)
        return batch.summary().left

    async with open_batch_setup() as setup:
        assert await left(setup, only=["fine"]) == 0
        assert await left(setup, limit=1) == 2
        assert await left(setup, keep_failed=True) == 0
        assert await left(setup) == 1


async def test_attempts_of_earlier_runs_are_counted_apart(
    autojump_clock: object, tmp_path: Path
) -> None:
    async with open_batch_setup() as setup:
        for number in (1, 2, 3):
            batch = run_batch(setup.manager, [job("bad", Fail())], out=tmp_path)
            await collect(batch)
            assert (batch.summary().attempts_now, batch.summary().attempts) == (1, number)
