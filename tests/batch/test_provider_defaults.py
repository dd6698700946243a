"""A provider's defaults apply to its jobs: below a job's own fields, above the general defaults."""

import pytest

from sessionmgr import Job, PermissionMode, run_batch
from sessionmgr.batch import JobsInvalid
from sessionmgr.manager import ArgumentTypeInvalid
from sessionmgr.model import RunStatus
from sessionmgr.testing.scripted_provider import scripted
from tests.batch.open_batch import collect, job, open_batch_setup

PLAN, EDITS = PermissionMode.PLAN, PermissionMode.ACCEPT_EDITS


async def test_a_job_comes_before_its_provider_and_that_before_all(autojump_clock: object) -> None:
    jobs = [
        Job(id="plain", prompt="x"),
        job("own", permission_mode=PermissionMode.FULL_AUTO),
        job("other", provider="second"),
    ]
    async with open_batch_setup(others={"second": scripted("second")}) as setup:
        batch = run_batch(
            setup.manager,
            jobs,
            defaults=Job(id="-", provider="actor", permission_mode=EDITS),
            provider_defaults={"actor": Job(id="-", permission_mode=PLAN)},
        )
        results = await collect(batch)
    assert {each.status for each in results} == {RunStatus.COMPLETED}
    asked = {each.job: each.permission.asked for each in results if each.permission}
    assert asked == {"plain": PLAN, "own": PermissionMode.FULL_AUTO, "other": EDITS}


async def test_defaults_of_an_unknown_provider_are_refused(autojump_clock: object) -> None:
    async with open_batch_setup() as setup:
        batch = run_batch(setup.manager, [job("a")], provider_defaults={"actr": Job(id="-")})
        with pytest.raises(JobsInvalid, match=r"provider_defaults: unknown provider 'actr'"):
            await collect(batch)


async def test_defaults_of_a_wrong_type_are_refused(autojump_clock: object) -> None:
    async with open_batch_setup() as setup:
        wrong: dict[str, object] = {"provider_defaults": ["actor"]}
        with pytest.raises(ArgumentTypeInvalid, match="provider_defaults"):
            run_batch(setup.manager, [job("a")], **wrong)  # type: ignore[arg-type]
