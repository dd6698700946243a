"""A job with denials is visible, and fails if the user requests that."""

import json
from pathlib import Path

import pytest

from sessionmgr import run_batch
from sessionmgr.adapter import Allow, ApprovalRequest
from sessionmgr.batch import JobDenial, dry_run
from sessionmgr.model import FailureKind, RunStatus
from sessionmgr.testing.scripted_provider import Ask, Say
from tests.batch.open_batch import collect, job, open_batch_setup

TOUCH = (Ask(tool="Bash", input={"command": "touch q1.txt"}), Say(text="done"))
NO_RULES = "no approval rules (--approve FILE): every request of an agent will be denied"


async def test_a_denied_job_is_in_the_summary_with_its_denials(
    autojump_clock: object, tmp_path: Path
) -> None:
    async with open_batch_setup() as setup:
        jobs = [job("q1", *TOUCH), job("fine", Say(text="done"))]
        batch = run_batch(setup.manager, jobs, out=tmp_path / "out")
        results = {result.job: result for result in await collect(batch)}
        assert batch.progress().denied == 1
    assert results["q1"].status is RunStatus.COMPLETED
    denial = JobDenial(
        job="q1",
        tool_name="Bash",
        summary="touch q1.txt",
        reason="no approver is configured",
        by="default",
    )
    assert (batch.summary().denied_jobs, batch.summary().denials) == (1, (denial,))
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["denied_jobs"] == 1
    assert summary["denials"][0]["summary"] == "touch q1.txt"


async def test_with_fail_a_denied_job_has_failed_and_a_rerun_continues_it(
    autojump_clock: object, tmp_path: Path
) -> None:
    async with open_batch_setup() as setup:
        batch = run_batch(setup.manager, [job("q1", *TOUCH)], out=tmp_path / "o", on_denied="fail")
        (result,) = await collect(batch)
        assert result.status is RunStatus.FAILED
        assert result.failure is not None
        assert result.failure.kind is FailureKind.PERMISSION_REFUSED
        assert result.failure.message.startswith(
            "denied: Bash: touch q1.txt (no approver is configured)"
        )
        assert batch.summary().statuses == {"failed": 1}

        async def allow(asked: ApprovalRequest) -> Allow:
            return Allow()

        again = run_batch(
            setup.manager, [job("q1", *TOUCH)], out=tmp_path / "o", on_denied="fail", approve=allow
        )
        (result,) = await collect(again)
        assert (result.failure, result.attempt) == (None, 2)
        assert (result.status, result.attempt) == (RunStatus.COMPLETED, 2)
        assert result.resumed_from is not None
        assert again.summary().denied_jobs == 0


async def test_a_job_that_completed_despite_a_denial_is_resumed_with_fail(
    autojump_clock: object, tmp_path: Path
) -> None:
    async def allow(asked: ApprovalRequest) -> Allow:
        return Allow()

    jobs, out = [job("q1", *TOUCH), job("fine", Say(text="done"))], tmp_path / "o"
    async with open_batch_setup() as setup:
        await collect(run_batch(setup.manager, jobs, out=out))
        assert await collect(run_batch(setup.manager, jobs, out=out, approve=allow)) == []
        other = run_batch(setup.manager, jobs, out=out, on_denied="fail", only=["fine"])
        assert await collect(other) == []
        assert other.summary().denied_jobs == 1
        again = run_batch(setup.manager, jobs, out=out, approve=allow, on_denied="fail")
        (result,) = await collect(again)
        assert (result.job, result.status, result.attempt) == ("q1", RunStatus.COMPLETED, 2)
        assert result.resumed_from is not None
        assert setup.prompts()[-1] == (
            "You were denied what you wanted to do (Bash: touch q1.txt). If it is still needed, try"
            " again: it may be allowed now. Then continue."
        )
        assert again.summary().denied_jobs == 0
        last = run_batch(setup.manager, jobs, out=out, approve=allow, on_denied="fail")
        assert await collect(last) == []


async def test_a_denial_by_the_mode_does_not_count(autojump_clock: object) -> None:
    edit = Ask(tool="Edit", input={"file_path": "a"}, effect="edit", paths=("a",))
    async with open_batch_setup() as setup:
        plan = job("a", edit, Say(text="planned"), permission_mode="plan")
        batch = run_batch(setup.manager, [plan], on_denied="fail")
        (result,) = await collect(batch)
    assert result.permission_denials
    assert result.status is RunStatus.COMPLETED
    assert batch.summary().denied_jobs == 0


@pytest.mark.parametrize(
    ("mode", "warned"), [("default", True), ("accept_edits", True), ("full_auto", False)]
)
async def test_a_batch_without_an_approver_warns_at_its_start(
    mode: str, warned: bool, autojump_clock: object
) -> None:
    async with open_batch_setup() as setup:
        jobs = [job("a", Say(text="done"), permission_mode=mode)]
        batch = run_batch(setup.manager, jobs)
        await collect(batch)
        assert (NO_RULES in batch.warnings) == warned
        async with dry_run(setup.manager, jobs) as planned:
            assert [each.job async for each in planned] == ["a"]
            assert (NO_RULES in planned.warnings) == warned


async def test_a_batch_with_rules_is_not_warned_of_having_none(autojump_clock: object) -> None:
    async def allow(asked: ApprovalRequest) -> Allow:
        return Allow()

    async with open_batch_setup() as setup:
        batch = run_batch(setup.manager, [job("a", *TOUCH)], approve=allow)
        await collect(batch)
        assert batch.warnings == ()
        assert batch.summary().denied_jobs == 0
        async with dry_run(setup.manager, [job("a", *TOUCH)], approve=allow) as planned:
            assert [each.job async for each in planned] == ["a"]
            assert planned.warnings == ()


async def test_only_two_ways_to_treat_a_denied_job_are_known() -> None:
    async with open_batch_setup() as setup:
        with pytest.raises(ValueError, match="on_denied: expected 'warn' or 'fail', got 'ignore'"):
            run_batch(setup.manager, [], on_denied="ignore")  # type: ignore[arg-type]


async def test_a_later_run_of_the_batch_reports_former_denials(
    autojump_clock: object, tmp_path: Path
) -> None:
    async with open_batch_setup() as setup:
        first = run_batch(setup.manager, [job("q1", *TOUCH)], out=tmp_path / "o")
        await collect(first)
        later = run_batch(setup.manager, [job("q1", *TOUCH), job("q2")], out=tmp_path / "o")
        assert [each.job for each in await collect(later)] == ["q2"]
    assert later.summary().denied_jobs == first.summary().denied_jobs == 1
    assert later.summary().denials == first.summary().denials
