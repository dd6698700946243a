"""Two batches never share a directory by accident, and no batch is empty by accident."""

import json
from pathlib import Path

import pytest
import trio.testing

from sessionmgr import run_batch
from sessionmgr.batch import JobsInvalid, OutDirectoryTaken, dry_run, spool_jobs
from tests.batch.open_batch import collect, job, open_batch_setup, results_of


def write_jobs(path: Path, *ids: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    lines = [json.dumps({"id": id, "provider": "actor", "prompt": id}) + "\n" for id in ids]
    path.write_text("".join(lines))
    return path


async def test_the_batch_of_another_file_keeps_its_directory(
    autojump_clock: object, tmp_path: Path
) -> None:
    one = write_jobs(tmp_path / "one" / "jobs.jsonl", "a")
    other = write_jobs(tmp_path / "other" / "jobs.jsonl", "b")
    out = tmp_path / "out"
    async with open_batch_setup() as setup:
        await collect(run_batch(setup.manager, one, out=out))
        before = (out / "results.jsonl").read_bytes()
        with pytest.raises(OutDirectoryTaken) as refused:
            await collect(run_batch(setup.manager, other, out=out))
        assert str(refused.value) == (
            f"{out} already holds the batch of {one}. Use --out DIR to keep them apart; if {other}"
            " is that file, moved or renamed, --force takes the directory over"
        )
        with pytest.raises(OutDirectoryTaken):
            async with dry_run(setup.manager, other, out=out):
                pytest.fail("it is another batch")
        assert (out / "results.jsonl").read_bytes() == before
        assert await results_of(run_batch(setup.manager, one, out=out)) == {}


async def test_the_same_file_by_another_path_is_the_same(
    autojump_clock: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_jobs(tmp_path / "jobs.jsonl", "a")
    (tmp_path / "link.jsonl").symlink_to(path)
    (tmp_path / "hard.jsonl").hardlink_to(path)
    monkeypatch.chdir(tmp_path)
    async with open_batch_setup() as setup:
        await collect(run_batch(setup.manager, path, out="out"))
        for name in ("jobs.jsonl", "link.jsonl", "hard.jsonl"):
            assert await results_of(run_batch(setup.manager, name, out="out")) == {}


async def test_a_renamed_file_takes_its_directory_over_by_force_and_does_nothing_twice(
    autojump_clock: object, tmp_path: Path
) -> None:
    path, out = write_jobs(tmp_path / "jobs.jsonl", "a"), tmp_path / "out"
    async with open_batch_setup() as setup:
        await collect(run_batch(setup.manager, path, out=out))
        path = path.rename(tmp_path / "renamed.jsonl")
        with pytest.raises(OutDirectoryTaken, match=r"renamed\.jsonl is that file"):
            await collect(run_batch(setup.manager, path, out=out))
        batch = run_batch(setup.manager, path, out=out, force=True)
        assert await results_of(batch) == {}
        (warning,) = batch.warnings
        assert warning.startswith(
            f"{out} held the batch of {tmp_path}/jobs.jsonl; --force has given it to "
        )
        assert await results_of(run_batch(setup.manager, path, out=out)) == {}
        assert setup.prompts() == ["a"]


async def test_a_directory_that_holds_its_own_jobs_file_may_move(
    autojump_clock: object, tmp_path: Path
) -> None:
    path = write_jobs(tmp_path / "out" / "jobs.jsonl", "a")
    async with open_batch_setup() as setup:
        await collect(run_batch(setup.manager, path, out=path.parent))
        moved = path.parent.rename(tmp_path / "moved")
        assert await results_of(run_batch(setup.manager, moved / "jobs.jsonl", out=moved)) == {}


async def test_a_file_without_jobs_is_refused(autojump_clock: object, tmp_path: Path) -> None:
    path = tmp_path / "jobs.jsonl"
    path.write_text("\n  \n")
    async with open_batch_setup() as setup:
        with pytest.raises(JobsInvalid, match=r"jobs\.jsonl: contains no jobs"):
            await collect(run_batch(setup.manager, path, out=tmp_path / "out"))
        assert not (tmp_path / "out").exists()
        assert await collect(run_batch(setup.manager, [])) == []  # a program may have none


async def test_a_stream_without_jobs_leaves_nothing(tmp_path: Path) -> None:
    send, receive = trio.testing.memory_stream_pair()
    await send.aclose()
    with pytest.raises(JobsInvalid, match="stdin: contains no jobs"):
        await spool_jobs(receive, tmp_path / "out")
    assert not (tmp_path / "out").exists()


async def test_a_selection_that_names_no_job_is_refused(
    autojump_clock: object, tmp_path: Path
) -> None:
    async with open_batch_setup() as setup:
        jobs = [job(f"j{n}") for n in range(7)]
        with pytest.raises(JobsInvalid) as refused:
            await collect(run_batch(setup.manager, jobs, only=["zzz"], skip=["x*"]))
        assert str(refused.value) == (
            "--only 'zzz', --skip 'x*' selects none of 7 jobs; ids: 'j0', 'j1', 'j2', 'j3', 'j4', …"
        )
        with pytest.raises(JobsInvalid, match=r"--only 'j1', --skip 'j\*' selects none"):
            await collect(run_batch(setup.manager, jobs, only=["j1"], skip=["j*"]))
        assert setup.prompts() == []


async def test_a_problem_of_an_unselected_job_stops_nothing(
    autojump_clock: object, tmp_path: Path
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    async with open_batch_setup() as setup:
        jobs = [job("a", cwd=str(gone)), job("b"), job("c", prompt_file="/no", prompt=None)]
        await collect(run_batch(setup.manager, jobs, out=tmp_path, only=["a"]))
        gone.rmdir()  # the completed job's directory is gone, too
        batch = run_batch(setup.manager, jobs, out=tmp_path, skip=["c"])
        assert await results_of(batch) == {"b": "completed"}
        assert batch.summary().statuses == {"completed": 2}
        async with dry_run(setup.manager, jobs, out=tmp_path, skip=["c"]) as planned:
            found = {each.job: (each.action, each.permission is None) async for each in planned}
        assert found == {"a": ("done", True), "b": ("done", False)}
        with pytest.raises(JobsInvalid, match="prompt_file: /no"):
            await collect(run_batch(setup.manager, jobs, out=tmp_path))


async def test_a_wrong_jobs_file_takes_no_directory_over(
    autojump_clock: object, tmp_path: Path
) -> None:
    one = write_jobs(tmp_path / "one.jsonl", "a")
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text('{"id": "b", "provider": "actor", "prompt": "b", "bogus": 1}\n')
    out = tmp_path / "out"
    async with open_batch_setup() as setup:
        await collect(run_batch(setup.manager, one, out=out))
        with pytest.raises(JobsInvalid, match="bogus"):
            await collect(run_batch(setup.manager, wrong, out=out, force=True))
        assert await results_of(run_batch(setup.manager, one, out=out)) == {}


async def test_a_dry_run_shows_that_force_would_take_over(
    autojump_clock: object, tmp_path: Path
) -> None:
    one, other = write_jobs(tmp_path / "one.jsonl", "a"), write_jobs(tmp_path / "two.jsonl", "b")
    out = tmp_path / "out"
    async with open_batch_setup() as setup:
        await collect(run_batch(setup.manager, one, out=out))
        async with dry_run(setup.manager, other, out=out, force=True) as planned:
            assert [each.job async for each in planned] == ["b"]
            assert planned.warnings[0] == f"{out} holds the batch of {one}; --force takes it over"
        assert await results_of(run_batch(setup.manager, one, out=out)) == {}
