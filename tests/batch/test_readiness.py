"""A batch with unusable providers is refused before its first job."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from sessionmgr import run_batch
from sessionmgr.adapter import Health, Options
from sessionmgr.batch import JobsInvalid, dry_run
from sessionmgr.testing.scripted_provider import ScriptedProvider
from tests.batch.open_batch import collect, job, open_batch_setup, results_of

ABSENT = Health(state="skip", detail="there is no program 'x' on PATH; install X")


class Absent(ScriptedProvider):
    name = "absent"
    asked = 0

    @classmethod
    def readiness(cls, options: Options, env: Mapping[str, str], cwd: str) -> Health:
        Absent.asked += 1
        return ABSENT if "READY" not in env else Health()


OTHERS = {"absent": Absent}


async def test_a_provider_that_cannot_be_used_is_named_once_and_nothing_starts(
    autojump_clock: object,
) -> None:
    asked = Absent.asked
    jobs = [job("a"), *(job(each, provider="absent") for each in "bcd")]
    async with open_batch_setup(others=OTHERS) as setup:
        with pytest.raises(JobsInvalid) as caught:
            await collect(run_batch(setup.manager, jobs))
        assert setup.prompts() == []
    said = "absent: there is no program 'x' on PATH; install X (job 2 and 2 other jobs)"
    assert caught.value.problems == (said,)
    assert Absent.asked == asked + 1


async def test_a_dry_run_refuses_it_as_well(autojump_clock: object) -> None:
    jobs = [job("a"), job("b", provider="absent")]
    async with open_batch_setup(others=OTHERS) as setup, dry_run(setup.manager, jobs) as plan:
        assert (await anext(plan)).job == "a"
        with pytest.raises(JobsInvalid, match="install X"):
            await anext(plan)


async def test_a_job_that_is_not_selected_needs_no_provider(autojump_clock: object) -> None:
    jobs = [job("a"), job("b", provider="absent")]
    async with open_batch_setup(others=OTHERS) as setup:
        assert await results_of(run_batch(setup.manager, jobs, only=["a"])) == {"a": "completed"}


async def test_a_refused_batch_leaves_no_job_behind(autojump_clock: object, tmp_path: Path) -> None:
    async with open_batch_setup(others=OTHERS) as setup:
        with pytest.raises(JobsInvalid):
            await collect(run_batch(setup.manager, [job("b", provider="absent")], out=tmp_path))
        again = job("b", provider="absent", env={"READY": "1"})
        assert await results_of(run_batch(setup.manager, [again], out=tmp_path)) == {
            "b": "completed"
        }
