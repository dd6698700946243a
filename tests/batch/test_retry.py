"""Retries: which failures are retried, and when."""

from collections.abc import Callable
from itertools import pairwise
from typing import Unpack

import pytest
import trio

from sessionmgr import run_batch
from sessionmgr.batch import BatchOptions, JobResult, JobsInvalid
from sessionmgr.model import FailureKind, RunStatus
from sessionmgr.model.timestamps import format_timestamp
from sessionmgr.testing.scripted_provider import (
    Ask,
    Fail,
    Hang,
    RateLimited,
    Say,
    Step,
    Tool,
    Wait,
    scripted,
)
from tests.batch.open_batch import collect, job, open_batch_setup, results_of, virtual_now

OVERLOADED = Fail(kind=FailureKind.OVERLOADED, retryable=True)


def failing(times: int, *steps: Step) -> Callable[[str, int], tuple[Step, ...]]:
    """Fail a number of times with these steps, resumed or not, then complete."""
    left = [steps] * times
    return lambda prompt, attempt: left.pop() if left else (Say(text="well"),)


async def one(
    scripts: Callable[[str, int], tuple[Step, ...]], **how: Unpack[BatchOptions]
) -> tuple[JobResult, list[float]]:
    async with open_batch_setup(scripts=scripts) as setup:
        (result,) = await collect(run_batch(setup.manager, [job("a")], **how))
        return result, setup.times()


async def test_transient_failures_are_retried_with_growing_delays(autojump_clock: object) -> None:
    result, times = await one(failing(2, OVERLOADED))
    assert (result.status, result.attempt, result.text) == (RunStatus.COMPLETED, 3, "well")
    assert 1 <= times[1] - times[0] <= 3
    assert 2 <= times[2] - times[1] <= 6


NO_ROOM = Fail(kind=FailureKind.START_FAILED, retryable=True)


async def test_a_lack_of_room_is_no_try_while_other_jobs_are_on(autojump_clock: object) -> None:
    # A command that never started is reported as a call.
    fails = failing(6, Tool(name="bash"), NO_ROOM)

    def scripts(prompt: str, attempt: int) -> tuple[Step, ...]:
        return fails(prompt, attempt) if prompt == "a" else (Wait(seconds=500),)

    async with open_batch_setup(scripts=scripts) as setup:
        jobs = [job("a"), job("b")]
        found = {
            result.job: result
            for result in await collect(run_batch(setup.manager, jobs, retries=0))
        }
    assert {name: result.status.value for name, result in found.items()} == {
        "a": "completed",
        "b": "completed",
    }
    assert found["a"].attempt == 7


async def test_a_lack_of_room_that_no_other_job_can_end_is_a_try(autojump_clock: object) -> None:
    result, _ = await one(failing(9, NO_ROOM), retries=2)
    assert (result.status, result.attempt) == (RunStatus.FAILED, 3)


async def test_the_same_seed_gives_the_same_times(autojump_clock: object) -> None:
    begun = trio.current_time()
    _, first = await one(failing(2, OVERLOADED))
    again = trio.current_time()
    _, second = await one(failing(2, OVERLOADED))
    assert [at - begun for at in first] == pytest.approx([at - again for at in second])


async def test_retries_come_to_an_end(autojump_clock: object) -> None:
    result, times = await one(failing(9, OVERLOADED), retries=1)
    assert (result.status, result.attempt, len(times)) == (RunStatus.FAILED, 2, 2)


async def test_permanent_failures_are_not_retried(autojump_clock: object) -> None:
    result, _ = await one(failing(1, Fail()))
    assert (result.status, result.attempt) == (RunStatus.FAILED, 1)


async def test_the_kinds_to_retry_can_be_named(autojump_clock: object) -> None:
    result, _ = await one(failing(1, Fail()), retry_on=["provider_error"])
    assert result.status is RunStatus.COMPLETED
    result, _ = await one(failing(1, OVERLOADED), retry_on=["provider_error"])
    assert result.status is RunStatus.FAILED


async def test_an_unknown_kind_is_refused(autojump_clock: object) -> None:
    with pytest.raises(ValueError, match="did you mean 'overloaded'"):
        await one(failing(0), retry_on=["overloded"])


async def test_a_job_with_side_effects_is_not_retried(autojump_clock: object) -> None:
    result, _ = await one(failing(1, Tool(name="Bash"), OVERLOADED))
    assert (result.status, result.attempt) == (RunStatus.FAILED, 1)


async def test_a_denied_call_is_no_side_effect(autojump_clock: object) -> None:
    result, _ = await one(failing(1, Ask(tool="Bash"), OVERLOADED))
    assert (result.status, result.attempt) == (RunStatus.COMPLETED, 2)


async def test_a_resumable_job_is_resumed(autojump_clock: object) -> None:
    resumable = Fail(kind=FailureKind.OVERLOADED, retryable=True, resumable=True)

    def scripts(prompt: str, attempt: int) -> tuple[Step, ...]:
        return (Say(text="on"),) if prompt == "continue" else (Tool(name="Bash"), resumable)

    result, _ = await one(scripts)
    assert (result.status, result.attempt, result.text) == (RunStatus.COMPLETED, 2, "on")
    assert result.resumed_from is not None


async def test_a_job_that_waits_for_a_retry_holds_no_slot(autojump_clock: object) -> None:
    def scripts(prompt: str, attempt: int) -> tuple[Step, ...]:
        return (OVERLOADED,) if prompt == "a" and not attempt else (Say(text="x"),)

    async with open_batch_setup(scripts=scripts) as setup:
        batch = run_batch(setup.manager, [job("a"), job("b"), job("c")], concurrency=1)
        async with batch as results:
            order: list[str] = []
            async for result in results:
                order.append(result.job)
                if len(order) == 2:
                    assert batch.progress().retrying == 1
        assert order == ["b", "c", "a"]


async def test_a_rate_limit_parks_the_job_until_it_passes(autojump_clock: object) -> None:
    resets = format_timestamp(virtual_now() + 100)

    def scripts(prompt: str, attempt: int) -> tuple[Step, ...]:
        return (RateLimited(resets_at=resets),) if prompt == "a" and not attempt else ()

    async with open_batch_setup(scripts=scripts) as setup:
        batch = run_batch(setup.manager, [job("a"), job("b")], concurrency=1, retries=0)
        found = await results_of(batch)
        assert found == {"a": "completed", "b": "completed"}
        assert setup.prompts()[0] == "a"
        assert 99 <= min(setup.times()[1:]) <= 111


async def test_limits_without_a_hint_pause_for_longer_each_time(autojump_clock: object) -> None:
    result, times = await one(failing(3, RateLimited()), retries=0)
    assert (result.status, result.attempt) == (RunStatus.COMPLETED, 4)
    pauses = [later - earlier for earlier, later in pairwise(times)]
    assert [900 * round(pause / 900 - 0.05) for pause in pauses] == [900, 1800, 3600]


async def test_hits_at_the_same_time_are_one(autojump_clock: object) -> None:
    def scripts(prompt: str, attempt: int) -> tuple[Step, ...]:
        return () if prompt == "continue" else (Wait(seconds=1), RateLimited())

    async with open_batch_setup(scripts=scripts) as setup:
        await results_of(run_batch(setup.manager, [job(name) for name in "abcd"]))
        assert trio.current_time() < 1000
        assert len(setup.prompts()) == 8


@pytest.mark.parametrize(
    "kind", [FailureKind.AUTH_FAILED, FailureKind.BILLING, FailureKind.CLI_NOT_FOUND]
)
async def test_a_provider_that_does_not_want_us_is_left_alone(
    autojump_clock: object, kind: FailureKind
) -> None:
    other = scripted("other", scripts=failing(9, Fail(kind=kind, retryable=True)))
    async with open_batch_setup(others={"other": other}) as setup:
        jobs = [job(f"{name}{n}", provider=name) for n in range(3) for name in ("other", "actor")]
        batch = run_batch(setup.manager, jobs, concurrency=1)
        found = await results_of(batch)
        assert found == {
            "other0": "failed",
            **{f"actor{n}": "completed" for n in range(3)},
        }
        assert batch.summary().providers_stopped == {"other": kind.value}
        assert batch.summary().statuses["not_run"] == 2


async def test_after_so_many_failures_nothing_more_is_started(autojump_clock: object) -> None:
    async with open_batch_setup() as setup:
        jobs = [job(f"bad{n}", Fail()) for n in range(5)]
        batch = run_batch(setup.manager, jobs, concurrency=1, max_failures=2)
        assert len(await results_of(batch)) == 2
        assert batch.summary().stopped == "2 jobs have failed"


async def test_a_job_that_waits_for_a_retry_keeps_its_result_when_stopped(
    autojump_clock: object,
) -> None:
    def scripts(prompt: str, attempt: int) -> tuple[Step, ...]:
        return (OVERLOADED,) if prompt == "a" else (Hang(),)

    async with open_batch_setup(scripts=scripts) as setup:
        batch = run_batch(setup.manager, [job("a"), job("b")], retries=9)
        async with batch as results:
            await trio.sleep(0.5)
            assert batch.progress().retrying == 1
            batch.stop()
            found = {each.job: each.status.value async for each in results}
        assert found == {"a": "failed", "b": "cancelled"}


@pytest.mark.parametrize(
    ("how", "what"),
    [
        (BatchOptions(concurrency=0), "concurrency"),
        (BatchOptions(retries=-1), "retries"),
        (BatchOptions(max_failures=0), "max_failures"),
        (BatchOptions(per_provider={"actor": 0}), "per_provider"),
        (BatchOptions(per_provider={"acter": 1}), "per_provider: .*did you mean 'actor'"),
        (BatchOptions(options={"acter": {}}), "options: .*did you mean 'actor'"),
    ],
)
async def test_settings_without_sense_are_refused(
    autojump_clock: object, how: BatchOptions, what: str
) -> None:
    with pytest.raises((ValueError, JobsInvalid), match=what):
        await one(failing(0), **how)


async def test_an_unknown_kind_of_failure_is_refused(autojump_clock: object) -> None:
    async with open_batch_setup() as setup:
        with pytest.raises(TypeError, match="'retrys'; did you mean 'retries'"):
            run_batch(setup.manager, [job("a")], retrys=3)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("how", "at_once"),
    [
        (BatchOptions(), 4),
        (BatchOptions(per_provider={"actor": 8}), 8),
        (BatchOptions(per_provider={"actor": 2}), 2),
        (BatchOptions(per_provider={"shell": 8}), 4),
        (BatchOptions(per_provider={"actor": 8}, concurrency=6), 6),
        (BatchOptions(concurrency=9), 9),
    ],
    ids=str,
)
async def test_so_many_jobs_of_a_provider_are_on(
    autojump_clock: object, how: BatchOptions, at_once: int
) -> None:
    async with open_batch_setup() as setup:
        jobs = [job(f"j{n}", Wait(seconds=10)) for n in range(20)]
        async with run_batch(setup.manager, jobs, **how) as batch:
            await trio.sleep(5)
            assert batch.progress().running == at_once


async def test_a_kind_that_is_named_is_not_started_over_after_tool_calls_unless_that_is_asked_for(
    autojump_clock: object,
) -> None:
    steps = (Tool(name="Bash"), Fail(kind=FailureKind.PROCESS_EXITED))
    result, _ = await one(failing(1, *steps), retry_on=["process_exited"])
    assert (result.status, result.attempt, result.side_effects) == (RunStatus.FAILED, 1, True)
    result, _ = await one(failing(1, *steps), retry_on=["process_exited"], retry_from="fresh")
    assert (result.status, result.attempt) == (RunStatus.COMPLETED, 2)
    result, _ = await one(failing(1, *steps), retry_on=["overloaded"], retry_from="fresh")
    assert (result.status, result.attempt) == (RunStatus.FAILED, 1)


async def test_a_paused_provider_is_shown(autojump_clock: object) -> None:
    async with open_batch_setup(scripts=failing(1, RateLimited())) as setup:
        batch = run_batch(setup.manager, [job("a"), job("b")], concurrency=1)
        async with batch as results:
            await trio.sleep(60)
            progress = batch.progress()
            assert 840 < progress.paused["actor"] < 1000
            assert (progress.retrying, progress.waiting, progress.eta) == (1, 1, None)
            assert len([each async for each in results]) == 2
            assert batch.progress().paused == {}
