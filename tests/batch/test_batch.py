"""A batch inside its block: jobs in, results out, several at a time."""

import pytest
import trio

from sessionmgr import run_batch
from sessionmgr.batch import JobsInvalid
from sessionmgr.model import EndReason, FailureKind, RunStatus
from sessionmgr.testing.scripted_provider import Fail, Hang, Say, Use, Wait, scripted
from tests.batch.open_batch import collect, job, open_batch_setup, results_of


async def test_every_job_gives_one_result(autojump_clock: object) -> None:
    async with open_batch_setup() as setup:
        jobs = [job(f"j{n}", prompt=f"hello {n}", metadata={"n": n}) for n in range(10)]
        results = await collect(run_batch(setup.manager, jobs))
        assert {result.job: result.text for result in results} == {
            f"j{n}": f"hello {n}" for n in range(10)
        }
        assert all(result.job == f"j{result.metadata['n']}" for result in results)
        assert {result.attempt for result in results} == {1}


async def test_results_come_as_jobs_end(autojump_clock: object) -> None:
    async with open_batch_setup() as setup:
        jobs = [job("slow", Wait(seconds=9)), job("quick", Wait(seconds=1))]
        async with run_batch(setup.manager, jobs) as results:
            seen = [(result.job, trio.current_time()) async for result in results]
        assert [name for name, _ in seen] == ["quick", "slow"]
        assert seen[0][1] < 2 < seen[1][1]


@pytest.mark.parametrize("at_once", [1, 3, 10])
async def test_no_more_jobs_are_on_than_asked_for(autojump_clock: object, at_once: int) -> None:
    async with open_batch_setup() as setup:
        jobs = [job(f"j{n}", Wait(seconds=1)) for n in range(9)]
        most = 0
        async with run_batch(setup.manager, jobs, concurrency=at_once) as results:
            async for _ in results:
                most = max(most, results.progress().running)
                assert setup.manager.status().running <= at_once
        assert len(set(setup.times())) == -(-9 // at_once)


async def test_a_provider_can_have_a_limit_of_its_own(autojump_clock: object) -> None:
    other = scripted("other")
    async with open_batch_setup(others={"other": other}) as setup:
        jobs = [job(f"j{n}", Wait(seconds=1)) for n in range(4)]
        jobs += [job(f"k{n}", Wait(seconds=1), provider="other") for n in range(4)]
        batch = run_batch(setup.manager, jobs, concurrency=8, per_provider={"actor": 1})
        assert len(await collect(batch)) == 8
        assert len(set(setup.times())) == 4
        assert len({entry.at for entry in other.log if entry.what == "prompt"}) == 1


async def test_a_failed_job_is_a_result_and_no_exception(autojump_clock: object) -> None:
    async with open_batch_setup() as setup:
        (result,) = await collect(run_batch(setup.manager, [job("bad", Fail(message="no"))]))
        assert result.status is RunStatus.FAILED
        assert result.failure is not None
        assert (result.failure.kind, result.failure.message) == (FailureKind.PROVIDER_ERROR, "no")


async def test_leaving_early_cancels_unfinished_jobs(autojump_clock: object) -> None:
    async with open_batch_setup() as setup:
        jobs = [job("quick", Say(text="hi")), *(job(f"endless {n}", Hang()) for n in range(3))]
        async with run_batch(setup.manager, jobs, concurrency=2) as results:
            async for result in results:
                assert result.job == "quick"
                break
        assert trio.current_time() < 10
        assert results.summary().statuses == {"completed": 1, "cancelled": 2, "not_run": 1}
        assert not setup.manager.status().running


async def test_a_stopped_batch_reports_its_running_jobs(autojump_clock: object) -> None:
    async with open_batch_setup() as setup:
        jobs = [job("a", Hang()), job("b", Hang()), job("c", Hang())]
        async with run_batch(setup.manager, jobs, concurrency=2) as results:
            await trio.sleep(5)
            results.stop("enough")
            ended = [result async for result in results]
        assert {(r.job, r.status, r.reason, r.detail) for r in ended} == {
            ("a", RunStatus.CANCELLED, EndReason.USER, "enough"),
            ("b", RunStatus.CANCELLED, EndReason.USER, "enough"),
        }


async def test_nothing_is_started_when_one_job_is_wrong(autojump_clock: object) -> None:
    async with open_batch_setup() as setup:
        jobs = [job("a"), job("b", provider="nobody"), job("a")]
        with pytest.raises(JobsInvalid) as refused:
            await collect(run_batch(setup.manager, jobs))
        assert [problem.split(":")[:2] for problem in refused.value.problems] == [
            ["job 2", " provider"],
            ["job 3", " id"],
        ]
        assert not setup.actor.log


async def test_an_exception_of_the_body_leaves_bare(autojump_clock: object) -> None:
    async with open_batch_setup() as setup:
        with pytest.raises(ZeroDivisionError):  # noqa: PT012  # the block is what is tested
            async with run_batch(setup.manager, [job("a", Hang())]):
                await trio.sleep(1)
                raise ZeroDivisionError


async def test_a_cancelled_body_leaves_cancelled(autojump_clock: object) -> None:
    async with open_batch_setup() as setup:
        batch = run_batch(setup.manager, [job("a", Hang())])
        with trio.move_on_after(3) as scope:
            async with batch:
                await trio.sleep_forever()
        assert scope.cancelled_caught
        assert batch.summary().statuses == {"cancelled": 1}


async def test_no_jobs_are_done_at_once(autojump_clock: object) -> None:
    async with open_batch_setup() as setup:
        assert await results_of(run_batch(setup.manager, [])) == {}


async def test_progress_lists_running_jobs(autojump_clock: object) -> None:
    async with open_batch_setup() as setup:
        steps = (Use(input=3, output=4, usd=0.5), Wait(seconds=10))
        jobs = [job("a", *steps), job("b", *steps), job("c", *steps)]
        async with run_batch(setup.manager, jobs, concurrency=2) as batch:
            await trio.sleep(4)
            progress = batch.progress()
            assert (progress.total, progress.running, progress.waiting) == (3, 2, 1)
            assert [(each.job, each.age, each.doing) for each in progress.jobs] == [
                ("a", 4.0, "thinking"),
                ("b", 4.0, "thinking"),
            ]
            assert (progress.tokens, progress.usd) == (14, 1.0)
            summary = await batch.wait()
            assert (batch.progress().tokens, batch.progress().usd) == (21, 1.5)
        assert summary.statuses == {"completed": 3}
        assert summary.all_completed
        assert batch.progress().done == 3
