"""Progress of a running batch: each job is counted once, and the rate is a recent one."""

import pytest
import trio
from trio.testing import MockClock

from sessionmgr import run_batch
from sessionmgr.batch import BatchProgress
from sessionmgr.model import FailureKind
from sessionmgr.testing.scripted_provider import Fail, Hang, Say, Step, Wait
from tests.batch.open_batch import job, open_batch_setup


def scripts(prompt: str, attempt: int) -> tuple[Step, ...]:
    """Play what a prompt contains: after how many seconds a job ends, and how."""
    seconds, end = prompt.split()
    ends: dict[str, Step] = {
        "well": Say(text="x"),
        "badly": Fail(),
        "never": Hang(),
        "later": Say(text="x"),
    }
    if not attempt:
        ends["later"] = Fail(kind=FailureKind.OVERLOADED, retryable=True)
    return (Wait(seconds=float(seconds)), ends[end])


def counts(progress: BatchProgress) -> dict[str, int]:
    states = ("done", "failed", "cancelled", "running", "waiting", "retrying")
    return {state: found for state in states if (found := getattr(progress, state))}


async def test_each_job_is_in_one_count_at_each_moment(autojump_clock: MockClock) -> None:
    jobs = [
        job("a", prompt="10 well"),
        job("b", prompt="20 badly"),
        job("c", prompt="0 never", deadline=30.0),
        job("d", prompt="15 later"),
        *[job(name, prompt="0 never") for name in "efg"],
    ]
    seen: list[dict[str, int]] = []
    async with (
        open_batch_setup(scripts=scripts) as setup,
        run_batch(setup.manager, jobs, concurrency=3, retries=1) as batch,
    ):
        for _ in range(9):
            await trio.sleep(4)
            progress = batch.progress()
            assert sum(counts(progress).values()) == progress.total == 7
            assert len(progress.jobs) == progress.running
            if counts(progress) not in seen:
                seen.append(counts(progress))
        batch.stop()
        await batch.wait()
        seen.append(counts(batch.progress()))
    assert seen == [
        {"running": 3, "waiting": 4},
        {"done": 1, "running": 3, "waiting": 3},
        {"done": 1, "failed": 1, "running": 3, "waiting": 2},
        {"done": 1, "failed": 1, "running": 3, "waiting": 1, "retrying": 1},
        {"done": 1, "failed": 2, "running": 3, "waiting": 1},
        {"done": 1, "failed": 2, "cancelled": 3, "waiting": 1},
    ]


async def test_the_rate_is_that_of_the_last_half_minute(autojump_clock: MockClock) -> None:
    jobs = [job(f"{n}", prompt="1 well") for n in range(20)]
    jobs += [job(name, prompt="100 well") for name in "ab"]
    async with open_batch_setup(scripts=scripts) as setup:
        async with run_batch(setup.manager, jobs, concurrency=1) as batch:
            assert (batch.progress().rate, batch.progress().eta) == (None, None)
            for now, ended, seconds in [(10.5, 10, 10.5), (25.5, 20, 25.5), (45.5, 5, 30)]:
                await trio.sleep(now - trio.current_time())
                progress = batch.progress()
                assert progress.rate == pytest.approx(ended / seconds)
                left = 22 - int(min(now, 20))
                assert progress.eta == pytest.approx(left * seconds / ended)
            await trio.sleep(10)
            progress = batch.progress()
            assert (progress.elapsed, progress.rate, progress.eta) == (55.5, None, None)
            await batch.wait()
            assert batch.progress().rate == pytest.approx(1 / 30)
            assert batch.progress().eta is None
        await trio.sleep(100)
        assert batch.progress().elapsed == 220


async def test_the_rate_is_right_when_more_end_than_are_remembered(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sessionmgr.batch.counters.MOST", 20)
    jobs = [job(f"{n}", prompt="0.25 well") for n in range(100)]
    async with (
        open_batch_setup(scripts=scripts) as setup,
        run_batch(setup.manager, jobs, concurrency=1) as batch,
    ):
        await trio.sleep(20)
        assert batch.progress().rate == pytest.approx(4, rel=0.1)
