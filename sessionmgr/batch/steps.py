"""The steps of a batch: each is one ledger entry about beginnings and ends of attempts.

The executor's thread takes them on behalf of the batch's main task, which waits. It shows results
and submits attempts only after a step is recorded.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, NamedTuple

from sessionmgr.batch import ledger as states
from sessionmgr.batch.attempts import Attempts
from sessionmgr.batch.budget import over_budget, within_budget
from sessionmgr.batch.denials import judged
from sessionmgr.batch.host import Ended, Resume, Work
from sessionmgr.batch.item import item_path
from sessionmgr.batch.reading import FAILED
from sessionmgr.batch.restart import Basis, Start
from sessionmgr.batch.results import decode_job_result
from sessionmgr.batch.retry import STOPS_THE_PROVIDER, Rule, Schedule, was_cut
from sessionmgr.model import IdKind, RunStatus, encode_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from sessionmgr.batch.board import Board, Chosen, OnNow
    from sessionmgr.batch.ledger import Ledger
    from sessionmgr.batch.results import ResultsFile
    from sessionmgr.batch.settings import Settings
    from sessionmgr.batch.tally import Tally
    from sessionmgr.manager import Manager
    from sessionmgr.model import RunResult

log: Final = logging.getLogger("sessionmgr.batch")

# A rerun accepts these as they are; it continues any other attempt that had begun.
_KEPT: Final = frozenset({RunStatus.FAILED, RunStatus.TIMED_OUT, RunStatus.RATE_LIMITED})


class Begun(NamedTuple):
    """The attempts that a step has begun, and whether the batch is finished."""

    works: list[Work]
    is_over: bool


class Steps:
    """Takes the steps of one batch."""

    def __init__(
        self,
        *,
        batch_id: str,
        manager: Manager,
        ledger: Ledger,
        board: Board,
        tally: Tally,
        settings: Settings,
        out: Path | None,
    ) -> None:
        self._batch_id: Final = batch_id
        self._manager: Final = manager
        self._ledger: Final = ledger
        self._board: Final = board
        self._tally: Final = tally
        self._settings: Final = settings
        self._out: Final = out
        self._results: ResultsFile | None = None
        self._attempts: Final = Attempts(ledger, manager, settings.retry_from)
        rule = Rule(retries=settings.retries, kinds=settings.retry_on)
        self._schedule: Final = Schedule(rule, board, manager)
        self.ends = ledger.last_end()
        """The number of the last end."""
        self._lines: list[bytes] = []
        self._replaced = 0
        """How many of these replace lines in the file."""

    def write_to(self, results: ResultsFile) -> None:
        """Write results to that file from now on."""
        self._results = results

    def count(self) -> None:
        """Count the ledger's entries before the first attempt."""
        self._tally.open(self._ledger)
        self._tally.left = sum(self._is_left(*each) for each in self._ledger.uncompleted())

    def _is_left(self, job: str, state: str, basis: Basis | None = None) -> bool:
        """Return whether the same call would run a job in that state; note a needed decision.

        `basis` is what its next attempt would build on, if the ledger does not have it yet.
        """
        is_kept = self._settings.keep_failed and state in FAILED
        if state == states.COMPLETED or is_kept or not self._settings.selects(job):
            return False
        if state not in FAILED and state != states.CANCELLED:
            return True
        if within_budget(self._ledger.job(job)[0], self._ledger.spent_on_work(job)) is None:
            return False  # the same budget allows no other attempt
        basis = basis or self._attempts.basis(job)
        if not self._attempts.is_undecided(basis):
            return True
        self._tally.wait_for_decision(job, "session" if basis.resumable else "fresh")
        return False

    def write_results(self) -> None:
        """Write the recorded results to the results file."""
        lines, self._lines = self._lines, []
        replaced, self._replaced = self._replaced, 0
        if lines and self._results is not None:
            self._results.add(lines, replaced)

    # --- beginning -------------------------------------------------------------------------------

    def begin(self, now: float) -> Begun:
        """Record the attempts that begin now, and the jobs that will not run."""
        works: list[Work] = []
        dropped = self._board.give_up()
        chosen = self._board.next(now)
        if chosen is None and not dropped:
            return Begun(works, self._board.is_over())
        try:
            with self._ledger.together():
                for job in dropped:
                    self._drop(job, now)
                while chosen is not None:
                    work = self._prepare(chosen, now)
                    if work is not None:
                        works.append(work)
                    chosen = self._board.next(now)
        except Exception:
            # None of these is on record, and no host hears of them: nobody may wait for their ends.
            for work in works:
                self._board.leave(work.job.id)
            self._tally.unbegin(len(works))
            raise
        return Begun(works, self._board.is_over())

    def leave(self, works: Iterable[Work]) -> None:
        """Leave jobs that never reached a host for the next run."""
        with self._ledger.together():
            for work in works:
                job = work.job.id
                self._board.leave(job)
                self._board.forget(job)
                self._ledger.unbegin(job, work.attempt, self._attempts.basis(job))
                self._tally.move(states.RUNNING, states.WAITING)

    def _prepare(self, chosen: Chosen, now: float) -> Work | None:
        """Record that an attempt begins; None if the job ends instead.

        It ends if its budget is used up, or if the user must decide on starting over.
        """
        ledger = self._ledger
        job, number, basis = ledger.job(chosen.job)
        before = states.RETRYING if chosen.retried else states.WAITING
        spent = ledger.spent_on_work(job.id)
        allowed = within_budget(job, spent)
        last = ledger.last_run(job.id)
        start = self._attempts.start(job.id, last, retried=chosen.retried)
        if allowed is None or start is Start.UNDECIDED:
            if allowed is None:
                result = over_budget(job, spent, self._stood(job.id))
            else:
                result = self._attempts.interrupted(job, last)
            line = self._attempts.line(result, job.id, number, basis)
            self._end(job.id, line, was=before, basis=basis, now=now)
            return None
        number += 1
        if start is Start.OVER:
            last, basis = None, Basis()
        session = last.session if last else self._manager.new_id(IdKind.SESSION)
        ledger.begin(job.id, number, session, basis)
        self._board.begin(chosen, number, now, job.cwd or "")
        self._tally.begin(before)
        return Work(
            batch=self._batch_id,
            job=allowed,
            attempt=number,
            session_id=session,
            resume=Resume(last.run, last.provider_session) if last else None,
            out=str(self._out) if self._out else None,
            item=item_path(self._out, job.id, number) if self._out else None,
        )

    def _stood(self, job: str) -> RunResult | None:
        """Return a job's former result."""
        line = self._ledger.standing_line(job)
        return None if line is None else decode_job_result(line)

    def _drop(self, job: str, now: float) -> None:
        """End a job with its last attempt's outcome: no attempt follows."""
        line, basis = self._ledger.result(job), self._attempts.basis(job)
        self._end(job, line, was=states.RETRYING, basis=basis, now=now)

    # --- ending ----------------------------------------------------------------------------------

    def take(self, reports: Sequence[Ended], now: float) -> None:
        """Record how attempts ended, and whether others follow."""
        with self._ledger.together():
            for ended in reports:
                self._take(ended, now)

    def _take(self, ended: Ended, now: float) -> None:
        on = self._board.on.get(ended.job)
        if on is None or on.attempt != ended.attempt:
            log.warning("event=late_report job=%s attempt=%d", ended.job, ended.attempt)
            return
        left = self._board.leave(ended.job)
        self._ledger.end_attempt(ended.job, ended.attempt, ended.result)
        self._tally.spend(ended.result)
        ended = judged(ended, self._settings.on_denied)
        result = ended.result
        if result.failure is not None and result.failure.kind in STOPS_THE_PROVIDER:
            self._board.stop(left.provider, result.failure.kind)
        if result.status is not RunStatus.RATE_LIMITED:
            self._board.relieve(left)
        conclusion = self._attempts.conclude(ended)
        due, kept = self._schedule.due(ended, conclusion.basis, left, now), conclusion.kept
        is_done = result.status is RunStatus.COMPLETED
        if not is_done and self._attempts.is_undecided(conclusion.basis):
            if due is not None or self._attempts.is_undecided(kept):
                result = conclusion.told
            due = None
        if due is not None and (over := self._attempts.over_budget(ended.job, result)) is not None:
            due, result = None, over
        line = self._attempts.line(result, ended.job, ended.attempt, conclusion.basis)
        if due is None or self._board.closed is not None or left.provider in self._board.stopped:
            self._end(ended.job, line, was=states.RUNNING, basis=kept, now=now)
            return
        self._ledger.retry(ended.job, line, conclusion.basis)
        self._board.wait(ended.job, left.provider, due)
        self._tally.move(states.RUNNING, states.RETRYING)

    def _end(self, job: str, line: bytes, *, was: str, basis: Basis, now: float) -> None:
        """Record that a job is over."""
        result, stood = decode_job_result(line), self._ledger.stood(job)
        self.ends += 1
        self._ledger.end(job, result.status, line, self.ends, basis)
        self._replaced += stood is not None
        self._board.forget(job)
        self._tally.end(was, result, stood, now)
        self._tally.left += self._is_left(job, result.status, basis) - self._settings.selects(job)
        self._lines.append(line)
        most = self._settings.max_failures
        if most is not None and self._tally.failures >= most and self._board.closed is None:
            self._board.closed = f"{self._tally.failures} jobs have failed"

    # --- losses ----------------------------------------------------------------------------------

    def adopt(self, job: str, attempt: int, state: str, ended: Ended | None, now: float) -> None:
        """Record the outcomes of a former process's attempts; None: the attempt never began."""
        with self._ledger.together():
            self._adopt(job, attempt, state, ended, now)

    def _adopt(self, job: str, attempt: int, state: str, ended: Ended | None, now: float) -> None:
        if ended is None:
            self._ledger.unbegin(job, attempt, self._attempts.basis(job))
            self._tally.move(state, states.WAITING)
            return
        self._ledger.end_attempt(job, attempt, ended.result)
        self._tally.spend(ended.result)
        ended = judged(ended, self._settings.on_denied)
        result = ended.result
        kept = self._settings.keep_failed and result.status in _KEPT and not was_cut(ended)
        conclusion = self._attempts.conclude(ended)
        is_over = result.status is RunStatus.COMPLETED
        if not is_over and self._attempts.is_undecided(conclusion.kept):
            result, is_over = conclusion.told, True
        if is_over or kept:
            line = self._attempts.line(result, job, attempt, conclusion.basis)
            self._end(job, line, was=state, basis=conclusion.kept, now=now)
        else:
            self._ledger.put_back(job, conclusion.kept)
            self._tally.move(state, states.WAITING)

    def show_again(self, jobs: Sequence[str]) -> None:
        """End undecided jobs once more, so that their results are shown."""
        with self._ledger.together():
            for job in jobs:
                result, basis = self._attempts.left(job), self._attempts.basis(job)
                self.ends += 1
                self._ledger.end(job, result.status, encode_json(result), self.ends, basis)

    def recover(self, on: OnNow, ended: Ended | None, now: float) -> None:
        """Record the outcome of an attempt whose host was lost."""
        with self._ledger.together():
            if ended is not None:
                self._take(ended, now)
            else:
                self._put_back(on, now)

    def _put_back(self, on: OnNow, now: float) -> None:
        """Return a job to where it was before an attempt that never began; its number is used."""
        self._board.leave(on.job)
        basis = self._attempts.basis(on.job)
        if self._board.take_back(on):  # its last attempt's outcome still stands in the ledger
            self._ledger.retry(on.job, self._ledger.result(on.job), basis)
            self._board.wait(on.job, on.provider, now)
            self._tally.move(states.RUNNING, states.RETRYING)
        else:
            self._ledger.unbegin(on.job, on.attempt, basis)
            self._tally.move(states.RUNNING, states.WAITING)
