"""A limit that a job sets itself counts, and a warning names the flag that does not."""

from pathlib import Path

import pytest

from sessionmgr import Job, run_batch
from sessionmgr.batch import dry_run
from sessionmgr.batch.denials import NO_RULES
from sessionmgr.model import PermissionMode
from tests.batch.open_batch import collect, job, open_batch_setup

DEFAULTS = Job(id="-", deadline=300.0, budget_usd=2.0, permission_mode=PermissionMode.PLAN)
FLAGS = {"deadline": "--deadline", "budget_usd": "--budget-usd", "permission_mode": "--permission"}
JOBS = [
    job("parser", deadline=900.0),
    job("plain"),
    job("login", deadline=60.0, budget_usd=0.5, permission_mode=PermissionMode.PLAN),
    job("same", deadline=300.0),
]
DEADLINE = "--deadline 300s: 2 jobs keep their own deadline (the first is 'parser': 900s)"
BUDGET = "--budget-usd 2: job 'login' keeps its own budget_usd (0.5)"


async def test_a_flag_that_jobs_override_is_named_with_the_jobs(
    autojump_clock: object, tmp_path: Path
) -> None:
    async with open_batch_setup() as setup:
        planned = dry_run(setup.manager, JOBS, defaults=DEFAULTS, sources=FLAGS)
        async with planned:
            assert len([each async for each in planned]) == 4
            assert planned.warnings == (DEADLINE, BUDGET)
        batch = run_batch(setup.manager, JOBS, defaults=DEFAULTS, sources=FLAGS, out=tmp_path)
        await collect(batch)
        assert batch.warnings == (DEADLINE, BUDGET)
        again = run_batch(setup.manager, JOBS, defaults=DEFAULTS, sources=FLAGS, out=tmp_path)
        await collect(again)
        assert again.warnings == ()  # no job runs


@pytest.mark.parametrize("sources", [{}, {"deadline": "/home/me/sessionmgr.toml:3"}])
async def test_a_default_that_is_no_flag_gives_way_in_silence(
    sources: dict[str, str], autojump_clock: object
) -> None:
    async with open_batch_setup() as setup:
        defaults = Job(id="-", deadline=300.0)
        batch = run_batch(setup.manager, JOBS, defaults=defaults, sources=sources, concurrency=1)
        await collect(batch)
    assert batch.warnings == (NO_RULES,)


async def test_a_flag_against_a_deadline_is_overridden_too(autojump_clock: object) -> None:
    async with open_batch_setup() as setup:
        batch = run_batch(setup.manager, JOBS[:1], defaults=Job(id="-"), sources=FLAGS)
        await collect(batch)
    assert batch.warnings[0] == ("--deadline 0: job 'parser' keeps its own deadline (900s)")
