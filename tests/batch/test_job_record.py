"""Record of a job that other commands read from its batch's directory."""

from pathlib import Path

import pytest

from sessionmgr import run_batch
from sessionmgr.batch import batch_id, read_job_record
from sessionmgr.testing.scripted_provider import Fail
from tests.batch.open_batch import job, open_batch_setup, results_of


async def test_a_job_is_read_as_its_batch_has_recorded_it(
    autojump_clock: object, tmp_path: Path
) -> None:
    jobs = [job("a", cwd=str(tmp_path)), job("b", Fail(), cwd=str(tmp_path))]
    async with open_batch_setup() as setup:
        batch = run_batch(setup.manager, jobs, out=tmp_path)
        await results_of(batch)
    assert batch_id(tmp_path) == batch.id
    for each, state in zip(jobs, ["completed", "failed"], strict=True):
        record = read_job_record(tmp_path, each.id)
        assert record is not None
        assert (record.job, record.state, record.busy) == (each, state, None)


@pytest.mark.parametrize("has_directory", [True, False])
async def test_a_session_names_its_batch_and_the_directory_of_the_results(
    autojump_clock: object, tmp_path: Path, has_directory: bool
) -> None:
    async with open_batch_setup() as setup:
        batch = run_batch(setup.manager, [job("a")], out=tmp_path if has_directory else None)
        await results_of(batch)
        [session] = await setup.manager.sessions()
    out = {"out": str(tmp_path)} if has_directory else {}
    assert session.metadata == {"batch": batch.id, "job": "a", **out}


async def test_there_is_no_record_of_a_job_that_the_batch_does_not_have(
    autojump_clock: object, tmp_path: Path
) -> None:
    async with open_batch_setup() as setup:
        await results_of(run_batch(setup.manager, [job("a")], out=tmp_path / "out"))
    assert read_job_record(tmp_path / "out", "b") is None
    assert read_job_record(tmp_path / "none", "a") is None
    assert batch_id(tmp_path / "none") is None
    assert not (tmp_path / "none").exists()
