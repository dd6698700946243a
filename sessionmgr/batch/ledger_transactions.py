"""Transactions of a batch: each records starts and ends of attempts in the ledger.

The executor's thread runs them on behalf of the batch's main task, which waits. That task shows
results and submits attempts only after their transaction.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, NamedTuple

from sessionmgr.batch import ledger as states
from sessionmgr.batch.attempt_dir import attempt_path
from sessionmgr.batch.attempt_policy import AttemptPolicy
from sessionmgr.batch.budget import budget_exceeded_result, with_remaining_budget
from sessionmgr.batch.denials import apply_denial_policy
from sessionmgr.batch.host import AttemptResult, AttemptSpec, ResumePoint
from sessionmgr.batch.import_jobs import FAILED
from sessionmgr.batch.restart import Basis, StartMode
from sessionmgr.batch.results import decode_job_result
from sessionmgr.batch.retry import STOPS_THE_PROVIDER, RetryRule, RetrySchedule, was_interrupted
from sessionmgr.model import IdKind, RunStatus, encode_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from sessionmgr.batch.counters import BatchCounters
    from sessionmgr.batch.ledger import Ledger
    from sessionmgr.batch.results import ResultsFile
    from sessionmgr.batch.scheduler import ActiveAttempt, NextJob, Scheduler
    from sessionmgr.batch.settings import BatchSettings
    from sessionmgr.manager import Manager
    from sessionmgr.model import RunResult

log: Final = logging.getLogger("sessionmgr.batch")

# A rerun with `keep_failed` accepts these outcomes; it continues all other started attempts.
_ACCEPTED: Final = frozenset({RunStatus.FAILED, RunStatus.TIMED_OUT, RunStatus.RATE_LIMITED})


class StepResult(NamedTuple):
    """The attempts that a transaction has started, and whether the batch has finished."""

    works: list[AttemptSpec]
    is_over: bool


class LedgerTransactions:
    """Runs the transactions of one batch."""

    def __init__(
        self,
        *,
        batch_id: str,
        manager: Manager,
        ledger: Ledger,
        scheduler: Scheduler,
        counters: BatchCounters,
        settings: BatchSettings,
        out: Path | None,
    ) -> None:
        self._batch_id: Final = batch_id
        self._manager: Final = manager
        self._ledger: Final = ledger
        self._scheduler: Final = scheduler
        self._counters: Final = counters
        self._settings: Final = settings
        self._out: Final = out
        self._results: ResultsFile | None = None
        self._attempts: Final = AttemptPolicy(ledger, manager, settings.retry_from)
        rule = RetryRule(retries=settings.retries, kinds=settings.retry_on)
        self._schedule: Final = RetrySchedule(rule, scheduler, manager)
        self.ends = ledger.last_end()
        """Number of the last end."""
        self._lines: list[bytes] = []
        self._replaced = 0
        """Number of lines to write that replace lines in the file."""

    def set_results_file(self, results: ResultsFile) -> None:
        """Write results to this file from now on."""
        self._results = results

    def load_counters(self) -> None:
        """Count the ledger's entries before the first attempt."""
        self._counters.load(self._ledger)
        self._counters.left = sum(self._is_left(*each) for each in self._ledger.uncompleted())

    def _is_left(self, job: str, state: str, basis: Basis | None = None) -> bool:
        """Return whether the same call would run a job in this state; note a needed decision.

        `basis` is the basis of its next attempt, if the ledger does not have it yet.
        """
        is_kept = self._settings.keep_failed and state in FAILED
        if state == states.COMPLETED or is_kept or not self._settings.selects(job):
            return False
        if state not in FAILED and state != states.CANCELLED:
            return True
        if with_remaining_budget(self._ledger.job(job)[0], self._ledger.work_usage(job)) is None:
            return False  # the same budget allows no other attempt
        basis = basis or self._attempts.basis(job)
        if not self._attempts.is_undecided(basis):
            return True
        self._counters.add_undecided(job, "session" if basis.resumable else "fresh")
        return False

    def write_results(self) -> None:
        """Write the recorded results to the results file."""
        lines, self._lines = self._lines, []
        replaced, self._replaced = self._replaced, 0
        if lines and self._results is not None:
            self._results.add(lines, replaced)

    # --- starts ----------------------------------------------------------------------------------

    def start_attempts(self, now: float) -> StepResult:
        """Record the attempts to start now, and the jobs that will not run."""
        works: list[AttemptSpec] = []
        dropped = self._scheduler.drop_retries()
        chosen = self._scheduler.next(now)
        if chosen is None and not dropped:
            return StepResult(works, self._scheduler.is_over())
        try:
            with self._ledger.transaction():
                for job in dropped:
                    self._end_without_retry(job, now)
                while chosen is not None:
                    work = self._start_attempt(chosen, now)
                    if work is not None:
                        works.append(work)
                    chosen = self._scheduler.next(now)
        except Exception:
            # The ledger has none of these attempts, and no host will get them, so none will end.
            for work in works:
                self._scheduler.record_end(work.job.id)
            self._counters.undo_starts(len(works))
            raise
        return StepResult(works, self._scheduler.is_over())

    def requeue_unstarted(self, works: Iterable[AttemptSpec]) -> None:
        """Return jobs that never reached a host to the queue of the next run."""
        with self._ledger.transaction():
            for work in works:
                job = work.job.id
                self._scheduler.record_end(job)
                self._scheduler.forget(job)
                self._ledger.undo_begin(job, work.attempt, self._attempts.basis(job))
                self._counters.move(states.RUNNING, states.WAITING)

    def _start_attempt(self, chosen: NextJob, now: float) -> AttemptSpec | None:
        """Record the start of an attempt; None if the job ends instead.

        The job ends if its budget is used up, or if the user must decide on starting over.
        """
        ledger = self._ledger
        job, number, basis = ledger.job(chosen.job)
        before = states.RETRYING if chosen.retried else states.WAITING
        spent = ledger.work_usage(job.id)
        allowed = with_remaining_budget(job, spent)
        last = ledger.last_run(job.id)
        start = self._attempts.start_mode(job.id, last, retried=chosen.retried)
        if allowed is None or start is StartMode.UNDECIDED:
            if allowed is None:
                result = budget_exceeded_result(job, spent, self._former_result(job.id))
            else:
                result = self._attempts.interrupted_result(job, last)
            line = self._attempts.result_line(result, job.id, number, basis)
            self._end_job(job.id, line, was=before, basis=basis, now=now)
            return None
        number += 1
        if start is StartMode.OVER:
            last, basis = None, Basis()
        session = last.session if last else self._manager.new_id(IdKind.SESSION)
        ledger.begin_attempt(job.id, number, session, basis)
        self._scheduler.record_start(chosen, number, now, job.cwd or "")
        self._counters.start_attempt(before)
        return AttemptSpec(
            batch=self._batch_id,
            job=allowed,
            attempt=number,
            session_id=session,
            resume=ResumePoint(last.run, last.provider_session) if last else None,
            out=str(self._out) if self._out else None,
            item=attempt_path(self._out, job.id, number) if self._out else None,
        )

    def _former_result(self, job: str) -> RunResult | None:
        """Return a job's former result."""
        line = self._ledger.former_line(job)
        return None if line is None else decode_job_result(line)

    def _end_without_retry(self, job: str, now: float) -> None:
        """End a job with its last attempt's outcome: no attempt follows."""
        line, basis = self._ledger.result(job), self._attempts.basis(job)
        self._end_job(job, line, was=states.RETRYING, basis=basis, now=now)

    # --- ends ------------------------------------------------------------------------------------

    def record_ends(self, reports: Sequence[AttemptResult], now: float) -> None:
        """Record the ends of attempts, and which jobs are retried."""
        with self._ledger.transaction():
            for ended in reports:
                self._record_end(ended, now)

    def _record_end(self, ended: AttemptResult, now: float) -> None:
        on = self._scheduler.active.get(ended.job)
        if on is None or on.attempt != ended.attempt:
            log.warning(
                "A report about a former attempt was ignored. job=%s attempt=%d",
                ended.job,
                ended.attempt,
            )
            return
        left = self._scheduler.record_end(ended.job)
        self._ledger.end_attempt(ended.job, ended.attempt, ended.result)
        self._counters.add_usage(ended.result)
        ended = apply_denial_policy(ended, self._settings.on_denied)
        result = ended.result
        if result.failure is not None and result.failure.kind in STOPS_THE_PROVIDER:
            self._scheduler.stop_provider(left.provider, result.failure.kind)
        if result.status is not RunStatus.RATE_LIMITED:
            self._scheduler.reset_hits(left)
        conclusion = self._attempts.conclude(ended)
        due, rerun_basis = (
            self._schedule.retry_time(ended, conclusion.basis, left, now),
            conclusion.rerun_basis,
        )
        is_done = result.status is RunStatus.COMPLETED
        if not is_done and self._attempts.is_undecided(conclusion.basis):
            if due is not None or self._attempts.is_undecided(rerun_basis):
                result = conclusion.result
            due = None
        if (
            due is not None
            and (over := self._attempts.budget_exceeded_result(ended.job, result)) is not None
        ):
            due, result = None, over
        line = self._attempts.result_line(result, ended.job, ended.attempt, conclusion.basis)
        if (
            due is None
            or self._scheduler.closed is not None
            or left.provider in self._scheduler.stopped
        ):
            self._end_job(ended.job, line, was=states.RUNNING, basis=rerun_basis, now=now)
            return
        self._ledger.retry(ended.job, line, conclusion.basis)
        self._scheduler.schedule_retry(ended.job, left.provider, due)
        self._counters.move(states.RUNNING, states.RETRYING)

    def _end_job(self, job: str, line: bytes, *, was: str, basis: Basis, now: float) -> None:
        """Record the end of a job."""
        result, former_result = decode_job_result(line), self._ledger.former_result(job)
        self.ends += 1
        self._ledger.end_job(job, result.status, line, self.ends, basis)
        self._replaced += former_result is not None
        self._scheduler.forget(job)
        self._counters.end_job(was, result, former_result, now)
        self._counters.left += self._is_left(job, result.status, basis) - self._settings.selects(
            job
        )
        self._lines.append(line)
        most = self._settings.max_failures
        if most is not None and self._counters.failures >= most and self._scheduler.closed is None:
            self._scheduler.closed = f"{self._counters.failures} jobs have failed"

    # --- losses ----------------------------------------------------------------------------------

    def record_recovered(
        self, job: str, attempt: int, state: str, ended: AttemptResult | None, now: float
    ) -> None:
        """Record the outcome of a former process's attempt; None: the attempt never started."""
        with self._ledger.transaction():
            self._record_recovered(job, attempt, state, ended, now)

    def _record_recovered(
        self, job: str, attempt: int, state: str, ended: AttemptResult | None, now: float
    ) -> None:
        if ended is None:
            self._ledger.undo_begin(job, attempt, self._attempts.basis(job))
            self._counters.move(state, states.WAITING)
            return
        self._ledger.end_attempt(job, attempt, ended.result)
        self._counters.add_usage(ended.result)
        ended = apply_denial_policy(ended, self._settings.on_denied)
        result = ended.result
        is_kept = (
            self._settings.keep_failed and result.status in _ACCEPTED and not was_interrupted(ended)
        )
        conclusion = self._attempts.conclude(ended)
        is_over = result.status is RunStatus.COMPLETED
        if not is_over and self._attempts.is_undecided(conclusion.rerun_basis):
            result, is_over = conclusion.result, True
        if is_over or is_kept:
            line = self._attempts.result_line(result, job, attempt, conclusion.basis)
            self._end_job(job, line, was=state, basis=conclusion.rerun_basis, now=now)
        else:
            self._ledger.requeue(job, conclusion.rerun_basis)
            self._counters.move(state, states.WAITING)

    def reissue_results(self, jobs: Sequence[str]) -> None:
        """Record the ends of undecided jobs again, so that this call shows their results."""
        with self._ledger.transaction():
            for job in jobs:
                result, basis = self._attempts.undecided_result(job), self._attempts.basis(job)
                self.ends += 1
                self._ledger.end_job(job, result.status, encode_json(result), self.ends, basis)

    def record_host_loss(self, on: ActiveAttempt, ended: AttemptResult | None, now: float) -> None:
        """Record the outcome of an attempt whose host was lost."""
        with self._ledger.transaction():
            if ended is not None:
                self._record_end(ended, now)
            else:
                self._requeue(on, now)

    def _requeue(self, on: ActiveAttempt, now: float) -> None:
        """Return a job to its state before an attempt that never started; its number stays used."""
        self._scheduler.record_end(on.job)
        basis = self._attempts.basis(on.job)
        if self._scheduler.undo_start(on):  # the outcome of the previous attempt is in the ledger
            self._ledger.retry(on.job, self._ledger.result(on.job), basis)
            self._scheduler.schedule_retry(on.job, on.provider, now)
            self._counters.move(states.RUNNING, states.RETRYING)
        else:
            self._ledger.undo_begin(on.job, on.attempt, basis)
            self._counters.move(states.RUNNING, states.WAITING)
