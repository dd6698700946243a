"""The cost of a batch covers all attempts and marks unknown parts."""

import json
from collections.abc import Callable
from pathlib import Path

import trio
import trio.testing
from hypothesis import given, settings, strategies as st

from sessionmgr import run_batch
from sessionmgr.batch import JobResult, Summary
from sessionmgr.model import Cost, EndReason, FailureKind, Provenance, RunStatus, Usage, total_cost
from sessionmgr.testing.scripted_provider import Fail, Hang, RateLimited, Say, Step, Use
from tests.batch.open_batch import collect, job, open_batch_setup

OVERLOADED = Fail(kind=FailureKind.OVERLOADED, retryable=True)
Attempts = list[tuple[Step, ...]]


def playing(plays: dict[str, Attempts]) -> Callable[[str, int], tuple[Step, ...]]:
    """Play a job's attempts one after the other."""
    left = {name: list(steps) for name, steps in plays.items()}
    return lambda prompt, attempt: left[prompt].pop(0)


async def outcome(
    plays: dict[str, Attempts], *, out: Path | None = None, budget_usd: float | None = None
) -> tuple[dict[str, JobResult], Summary]:
    async with open_batch_setup(scripts=playing(plays)) as setup:
        jobs = [job(name, budget_usd=budget_usd) for name in plays]
        batch = run_batch(setup.manager, jobs, retries=9, out=out)
        results = {result.job: result for result in await collect(batch)}
        return results, batch.summary()


used = st.one_of(
    st.just(Use(output=3)),
    st.builds(Use, output=st.integers(1, 100), usd=st.sampled_from([0.25, 0.5, 1.0])),
)


@settings(max_examples=40)
@given(st.lists(st.lists(used, min_size=1, max_size=3), min_size=1, max_size=4))
def test_the_results_of_a_batch_add_up_to_its_summary(uses: list[list[Use]]) -> None:
    plays: dict[str, Attempts] = {
        f"j{number}": [*((use, OVERLOADED) for use in each[:-1]), (each[-1], Say(text="well"))]
        for number, each in enumerate(uses)
    }

    async def main() -> None:
        results, summary = await outcome(plays)
        flat = [use for each in uses for use in each]
        assert summary.tokens.output == sum(use.output for use in flat)
        assert sum((each.usage for each in results.values()), Usage()) == summary.tokens
        assert total_cost(each.cost for each in results.values()) == summary.cost
        assert sum(each.attempt for each in results.values()) == summary.attempts == len(flat)
        known = [use.usd for use in flat if use.usd is not None]
        assert summary.cost.usd == (sum(known) if known else None)
        assert (summary.cost.provenance is Provenance.REPORTED) == (len(known) == len(flat))

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


async def test_a_result_has_the_cost_of_all_attempts(
    autojump_clock: object, tmp_path: Path
) -> None:
    plays: dict[str, Attempts] = {
        "a": [(Use(output=10, usd=0.5), OVERLOADED), (Use(output=1, usd=0.25), Say(text="well"))]
    }
    results, summary = await outcome(plays, out=tmp_path / "out")
    cost = Cost(usd=0.75, provenance=Provenance.REPORTED)
    assert (results["a"].cost, results["a"].usage.output, results["a"].attempt) == (cost, 11, 2)
    assert (summary.cost, summary.tokens.output) == (cost, 11)
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["cost"] == {"usd": 0.75, "provenance": "reported"}


async def test_a_cost_is_partial_where_an_attempt_did_not_report_one(
    autojump_clock: object, tmp_path: Path
) -> None:
    plays: dict[str, Attempts] = {
        "known": [(Use(usd=0.5), Say(text="well"))],
        "unknown": [(Use(output=7), Say(text="well"))],
    }
    results, summary = await outcome(plays, out=tmp_path / "out")
    assert results["known"].cost.provenance is Provenance.REPORTED
    assert results["unknown"].cost == Cost()
    assert summary.cost == Cost(usd=0.5, provenance=Provenance.PARTIAL)
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["cost"] == {"usd": 0.5, "provenance": "partial"}


async def test_the_progress_marks_a_partial_cost(autojump_clock: object) -> None:
    plays: dict[str, Attempts] = {
        "known": [(Use(usd=0.5), Say(text="well"))],
        "unknown": [(Use(output=7), Say(text="well"))],
    }
    async with open_batch_setup(scripts=playing(plays)) as setup:
        batch = run_batch(setup.manager, [job(name) for name in plays])
        async with batch:
            await batch.wait()
            progress = batch.progress()
    assert (progress.usd, progress.provenance) == (0.5, Provenance.PARTIAL)


async def test_a_job_that_never_started_leaves_a_known_cost_known(
    autojump_clock: object, tmp_path: Path
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    async with open_batch_setup(
        scripts=playing({"a": [(Use(usd=0.5), Say(text="well"))]})
    ) as setup:
        jobs = [job("a"), job("b", cwd=str(gone))]
        batch = run_batch(setup.manager, jobs, concurrency=1)
        async with batch as results:
            gone.rmdir()  # after the check, and before the start
            statuses = {each.job: each.status async for each in results}
    assert statuses == {"a": RunStatus.COMPLETED, "b": RunStatus.FAILED}
    assert batch.summary().cost == Cost(usd=0.5, provenance=Provenance.REPORTED)


# --- the budget of a job -------------------------------------------------------------------------


async def test_a_retry_gets_the_remaining_budget(autojump_clock: object) -> None:
    plays: dict[str, Attempts] = {"a": [(Use(usd=0.75), OVERLOADED), (Use(usd=0.5), Hang())]}
    results, _ = await outcome(plays, budget_usd=1.0)
    result = results["a"]
    assert (result.status, result.reason, result.attempt) == (RunStatus.FAILED, EndReason.BUDGET, 2)
    assert result.cost.usd == 1.25


async def test_a_job_is_not_retried_when_nothing_is_left_of_its_budget(
    autojump_clock: object,
) -> None:
    plays: dict[str, Attempts] = {"a": [(Use(usd=0.99), OVERLOADED)] * 2}
    results, summary = await outcome(plays, budget_usd=1.98)
    result = results["a"]
    assert (result.status, result.attempt, result.cost.usd) == (RunStatus.FAILED, 2, 1.98)
    assert result.failure is not None
    assert result.failure.kind is FailureKind.BUDGET_EXCEEDED
    assert result.failure.message.startswith(
        "$1.9800 of budget_usd 1.98 was used by 2 attempts; raise budget_usd to continue"
    )
    assert summary.failures == {"budget_exceeded": 1}


async def test_a_rerun_starts_no_job_whose_budget_is_used_up(
    autojump_clock: object, tmp_path: Path
) -> None:
    plays: dict[str, Attempts] = {"a": [(Use(usd=1.5), Hang())]}
    async with open_batch_setup(scripts=playing(plays)) as setup:
        for _ in range(2):
            batch = run_batch(setup.manager, [job("a", budget_usd=1.0)], out=tmp_path / "out")
            (result,) = await collect(batch)
            assert result.failure is not None
            assert result.failure.kind is FailureKind.BUDGET_EXCEEDED
            assert (result.attempt, result.cost.usd) == (1, 1.5)
            assert batch.summary().statuses == {"failed": 1}
            assert batch.summary().left == 0
        assert setup.prompts() == ["a"]


async def test_a_job_that_waits_for_its_provider_is_stopped_by_its_budget_as_well(
    autojump_clock: object,
) -> None:
    plays: dict[str, Attempts] = {"a": [(Use(usd=1.0), RateLimited())]}
    begun = trio.current_time()
    results, _ = await outcome(plays, budget_usd=1.0)
    assert results["a"].failure is not None
    assert results["a"].failure.kind is FailureKind.BUDGET_EXCEEDED
    assert trio.current_time() - begun < 60
