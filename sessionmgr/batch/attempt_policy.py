"""A job's attempts in the ledger, and how they determine the next one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from msgspec.structs import replace

from sessionmgr.batch.budget import budget_exceeded_result, with_remaining_budget
from sessionmgr.batch.restart import (
    Basis,
    RetryFrom,
    StartMode,
    decide_attempt,
    why_not_resumed,
    with_required_decision,
)
from sessionmgr.batch.results import decode_job_result, job_result
from sessionmgr.model import Cost, Failure, FailureKind, RunResult, RunStatus, encode_json

if TYPE_CHECKING:
    from sessionmgr.batch.host import AttemptResult
    from sessionmgr.batch.job import Job
    from sessionmgr.batch.ledger import LastRun, Ledger
    from sessionmgr.batch.restart import AttemptDecision
    from sessionmgr.batch.results import JobResult
    from sessionmgr.manager import Manager

R = TypeVar("R", bound=RunResult)


class AttemptPolicy:
    """Decides what an attempt's end means for the job, and how the next attempt begins."""

    def __init__(self, ledger: Ledger, manager: Manager, policy: RetryFrom) -> None:
        self._ledger: Final = ledger
        self._manager: Final = manager
        self.policy: Final = policy

    def basis(self, job: str) -> Basis:
        """Return the basis of the job's next or current attempt."""
        return self._ledger.job(job)[2]

    def start_mode(self, job: str, last: LastRun | None, *, retried: bool) -> StartMode:
        """Return how a job's next attempt begins."""
        basis, policy = self.basis(job), self.policy
        if last is None:
            basis = Basis(side_effects=basis.side_effects)
        elif retried and policy is RetryFrom.FRESH and last.status == RunStatus.RATE_LIMITED:
            policy = RetryFrom.SESSION  # the attempt only waited for a limit to pass
        return basis.start(policy)

    def conclude(self, ended: AttemptResult) -> AttemptDecision:
        """Decide on the end of an attempt that is already on record."""
        job, _, before = self._ledger.job(ended.job)
        provider, manager = job.provider or "", self._manager
        return decide_attempt(
            ended,
            before,
            self._ledger.past_attempts(ended.job),
            resumes=manager.supports(provider, "resume"),
            is_command=manager.runs_commands(provider),
        )

    def is_undecided(self, basis: Basis) -> bool:
        """Return whether the user has to decide how a job's next attempt begins."""
        return basis.start(self.policy) is StartMode.UNDECIDED

    def result_line(self, result: RunResult, job: str, attempt: int, basis: Basis) -> bytes:
        """Return a job's result line: its last attempt's, with the usage of all attempts."""
        spent = self._ledger.job_usage(job)
        total = replace(result, usage=spent.usage, cost=spent.cost or Cost())
        return encode_json(job_result(total, job, attempt, side_effects=basis.side_effects))

    def budget_exceeded_result(self, job: str, last: RunResult) -> RunResult | None:
        """Return the result of a job whose budget is used up; None if it allows an attempt."""
        asked, spent = self._ledger.job(job)[0], self._ledger.work_usage(job)
        return (
            None
            if with_remaining_budget(asked, spent)
            else budget_exceeded_result(asked, spent, last)
        )

    def interrupted_result(self, job: Job, last: LastRun | None) -> RunResult:
        """Return the result of an interrupted job that is left undecided."""
        return self._undecided(job.id, _interrupted_run(job, last))

    def undecided_result(self, job: str) -> JobResult:
        """Return the result of an undecided job, which names the decision."""
        return self._undecided(job, decode_job_result(self._ledger.result(job)))

    def _undecided(self, job: str, result: R) -> R:
        resumes = self._manager.supports(result.provider, "resume")
        why_not = why_not_resumed(result, self._ledger.past_attempts(job), resumes=resumes)
        return with_required_decision(result, self.basis(job), why_not=why_not)


def _interrupted_run(job: Job, last: LastRun | None) -> RunResult:
    failure = Failure(kind=FailureKind.MANAGER_CRASHED, message="it was interrupted")
    return RunResult(
        id=last.run if last else "",
        session_id=last.session if last else "",
        provider=job.provider or "",
        status=RunStatus.FAILED,
        failure=failure,
        provider_session_id=last.provider_session if last else None,
        metadata=job.metadata or {},
    )
