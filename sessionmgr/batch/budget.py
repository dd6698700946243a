"""A job's budget, which covers all attempts: each attempt gets the remainder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from sessionmgr.model import EndReason, Failure, FailureKind, RunResult, RunStatus

if TYPE_CHECKING:
    from sessionmgr.batch.job import Job
    from sessionmgr.batch.usage_totals import UsageTotals


def with_remaining_budget(job: Job, spent: UsageTotals) -> Job | None:
    """Return the job with the remaining budget for its next attempt; None if it is used up."""
    if job.budget_usd is None:
        return job
    left = job.budget_usd - _known(spent)
    return replace(job, budget_usd=left) if left > 0 else None


def budget_exceeded_result(
    job: Job, spent: UsageTotals, last: RunResult | None = None
) -> RunResult:
    """Return the result of a job that is not retried because its budget is used up."""
    attempts = "1 attempt" if spent.attempts == 1 else f"{spent.attempts} attempts"
    message = (
        f"${_known(spent):.4f} of budget_usd {job.budget_usd:g} was used by {attempts}; "
        "raise budget_usd to continue"
    )
    failure = None if last is None else last.failure
    if failure is not None and failure.kind is not FailureKind.BUDGET_EXCEEDED:
        message += f" (the last attempt failed: {failure.kind}: {failure.message})"
    if last is None:
        last = RunResult(
            id="", session_id="", provider=job.provider or "", metadata=job.metadata or {}
        )
    return replace(
        last,
        status=RunStatus.FAILED,
        reason=EndReason.BUDGET,
        failure=Failure(kind=FailureKind.BUDGET_EXCEEDED, message=message),
    )


def _known(spent: UsageTotals) -> float:
    return 0.0 if spent.cost is None or spent.cost.usd is None else spent.cost.usd
