"""The one task that conducts a batch: reports in, the ledger written, the next attempts out.

Each turn of its loop is one entry in the ledger: what has ended, and what is begun in its stead.
Only when that is on record are results shown and attempts submitted.
"""

from __future__ import annotations

import logging
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.batch import ledger as states
from sessionmgr.batch.attempts import Attempts, not_begun
from sessionmgr.batch.budget import over_budget, within_budget
from sessionmgr.batch.denials import denials_of, judged
from sessionmgr.batch.host import LEASE, RENEW_EVERY, Ended, Resume, Work
from sessionmgr.batch.item import item_path
from sessionmgr.batch.recovery import recover
from sessionmgr.batch.restart import Basis, Start
from sessionmgr.batch.results import decode_job_result
from sessionmgr.batch.retry import STOPS_THE_PROVIDER, Rule, Schedule, was_cut
from sessionmgr.errors import BatchError, HostLost
from sessionmgr.model import Kind, RunStatus, encode_json

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sessionmgr.batch.board import Board, Chosen, OnNow
    from sessionmgr.batch.host import Host
    from sessionmgr.batch.ledger import Ledger
    from sessionmgr.batch.results import ResultsFile
    from sessionmgr.batch.settings import Settings
    from sessionmgr.batch.tally import Tally
    from sessionmgr.manager import Manager

log: Final = logging.getLogger("sessionmgr.batch")

GRACE: Final = 90.0
"""Seconds in which what was cancelled has to end, at the end of a batch: close and store clock."""
# What a rerun takes as it is; anything else that was found begun is gone on with.
_KEPT: Final = frozenset({RunStatus.FAILED, RunStatus.TIMED_OUT, RunStatus.RATE_LIMITED})


class Conductor:
    """Conducts one batch."""

    def __init__(
        self,
        *,
        batch_id: str,
        manager: Manager,
        host: Host,
        ledger: Ledger,
        board: Board,
        tally: Tally,
        settings: Settings,
        out: Path | None,
    ) -> None:
        self._batch_id: Final = batch_id
        self._manager: Final = manager
        self._host: Final = host
        self._ledger: Final = ledger
        self._board: Final = board
        self._tally: Final = tally
        self._settings: Final = settings
        self._out: Final = out
        self._results: ResultsFile | None = None
        self._attempts: Final = Attempts(ledger, manager, settings.retry_from)
        rule = Rule(retries=settings.retries, kinds=settings.retry_on)
        self._schedule: Final = Schedule(rule, board, manager)
        self._heard = 0
        self._untold: Final[deque[Work]] = deque()
        """What is on record as begun, and the host has not heard of."""
        self._ends = ledger.last_end()
        self._lines: list[bytes] = []
        self._replaced = 0
        """How many of these take the place of lines that are in the file."""
        self._rung = trio.Event()
        self._nap = trio.CancelScope()
        self._stop_detail: str | None = None
        self._stopping = False
        self._all_cancelled = False
        self.over: Final = trio.Event()
        """Everything is done that will be; whoever has crashed never says so."""

    # --- what others ask of it -------------------------------------------------------------------

    @property
    def ends(self) -> int:
        """The number of the last end that is on record."""
        return self._ends

    async def heard(self, after: int) -> None:
        """Wait until there are ends above that number, or there will be none."""
        await trio.lowlevel.checkpoint()
        while self._ends <= after and not self.over.is_set():
            await self._rung.wait()

    def write_to(self, results: ResultsFile) -> None:
        """Have results written to that file from now on."""
        self._results = results

    def stop(self, detail: str | None) -> None:
        """Start nothing more, and have what is on end."""
        if not self._stopping:
            self._stopping, self._stop_detail = True, detail
            self._board.closed = detail or "stopped"
            self._nap.cancel()

    # --- its life --------------------------------------------------------------------------------

    async def conduct(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Do the jobs; when there is nothing more to do, be over."""
        task_status.started()
        try:
            await self._do_all()
        except Exception as error:
            # Whoever waits for the end is cancelled with the whole block, which says what it was.
            log.error("event=batch_down why=%s", error)  # which goes on its way
            self.stop(str(error))
            await self._wind_down()  # shielded and bounded in there  # noqa: ASYNC120
            raise
        except BaseException:
            self.stop("the batch was left")
            await self._wind_down()  # shielded and bounded in there  # noqa: ASYNC102
            self._be_over()
            raise
        self._be_over()

    async def _do_all(self) -> None:
        crash: Exception | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._renew)
            try:
                await self._go_on()
            except Exception as error:  # noqa: BLE001  # raised bare, not as the nursery's
                crash = error
            nursery.cancel_scope.cancel()
        if crash is not None:
            raise crash

    def _be_over(self) -> None:
        self.over.set()
        self._ring()

    async def _wind_down(self) -> None:
        with trio.move_on_after(GRACE, shield=True):
            # The next to run this batch finds out what became of it.
            with suppress(HostLost, BatchError):
                await self._cancel_all()
                self._all_cancelled = True
                self._leave_untold()
                await self._go_on()
            await trio.lowlevel.checkpoint()

    def _leave_untold(self) -> None:
        """Have those wait for the next time that no host has heard of."""
        with self._ledger.together():
            for work in self._untold:
                self._board.leave(work.job.id)
                self._board.forget(work.job.id)
                self._ledger.unbegin(work.job.id, self._attempts.basis(work.job.id))
                self._tally.move(states.RUNNING, states.WAITING)
        self._untold.clear()

    async def _renew(self) -> None:
        while True:
            with suppress(HostLost):  # whoever follows it hears of that, too
                await self._host.renew(LEASE)
            await trio.sleep(RENEW_EVERY)

    async def _go_on(self) -> None:
        """Take reports and begin attempts, until all is over."""
        await trio.lowlevel.checkpoint()
        while True:
            if self._stopping and not self._all_cancelled:
                self._all_cancelled = True
                await self._cancel_all()
            self._untold.extend(self._begin())
            self._show()
            try:
                while self._untold:
                    await self._host.submit(self._untold[0])
                    self._untold.popleft()
                if self._board.is_over():
                    return
                await self._listen()
            except HostLost as error:
                await self._recover(error)

    async def _listen(self) -> None:
        """Wait for reports, or until something else is to be done."""
        if self._stopping and not self._all_cancelled:
            return
        self._nap = trio.CancelScope(deadline=self._board.wakes_at(trio.current_time()))
        with self._nap:
            reports = await self._host.follow(self._heard)
            with self._ledger.together():
                for _, ended in reports:
                    self._take(ended)
            if reports:
                self._heard = reports[-1][0]

    async def _cancel_all(self) -> None:
        for on in list(self._board.on.values()):
            try:
                await self._host.cancel(on.job, on.attempt, self._stop_detail)
            except HostLost:
                return

    # --- beginning -------------------------------------------------------------------------------

    def _begin(self) -> list[Work]:
        """Put on record what is begun now, and what will not be."""
        works: list[Work] = []
        now = trio.current_time()
        dropped = self._board.give_up()
        chosen = self._board.next(now)
        if chosen is None and not dropped:
            return works
        with self._ledger.together():
            for job in dropped:
                self._drop(job)
            while chosen is not None:
                work = self._prepare(chosen, now)
                if work is not None:
                    works.append(work)
                chosen = self._board.next(now)
        return works

    def _prepare(self, chosen: Chosen, now: float) -> Work | None:
        """Put on record that an attempt begins; None if the job ends instead.

        It does where its budget allows no other, or starting it over is for the user to decide.
        """
        ledger = self._ledger
        job, number, basis = ledger.job(chosen.job)
        before = states.RETRYING if chosen.retried else states.WAITING
        allowed = within_budget(job, ledger.spent_on(job.id))
        last = ledger.last_run(job.id)
        start = self._attempts.start(job.id, last, retried=chosen.retried)
        if allowed is None or start is Start.UNDECIDED:
            if allowed is None:
                result = over_budget(job, ledger.spent_on(job.id))
            else:
                result = self._attempts.interrupted(job, last)
            line = self._attempts.line(result, job.id, number, basis)
            self._end(job.id, result.status, line, was=before, basis=basis)
            return None
        number += 1
        if start is Start.OVER:
            last, basis = None, Basis()
        session = last.session if last else self._manager.new_id(Kind.SESSION)
        ledger.begin(job.id, number, session, basis)
        self._board.begin(chosen, number, now)
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

    def _drop(self, job: str) -> None:
        """End a job with what its last attempt came to: there will be no other."""
        line = self._ledger.result(job)
        state = decode_job_result(line).status
        self._end(job, state, line, was=states.RETRYING, basis=self._attempts.basis(job))

    # --- ending ----------------------------------------------------------------------------------

    def _take(self, ended: Ended) -> None:
        """Put on record how an attempt ended, and whether there is another."""
        on = self._board.on.get(ended.job)
        if on is None or on.attempt != ended.attempt:
            log.warning("event=late_report job=%s attempt=%d", ended.job, ended.attempt)
            return
        left = self._board.leave(ended.job)
        self._ledger.end_attempt(ended.job, ended.attempt, ended.result)
        self._tally.spend(ended.result)
        ended = judged(ended, self._settings.on_denied)
        result, now = ended.result, trio.current_time()
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
            self._end(ended.job, result.status, line, was=states.RUNNING, basis=kept)
            return
        self._ledger.retry(ended.job, line, conclusion.basis)
        self._board.wait(ended.job, left.provider, due)
        self._tally.move(states.RUNNING, states.RETRYING)

    def _end(self, job: str, state: str, line: bytes, *, was: str, basis: Basis) -> None:
        """Put on record that a job is over."""
        denied = bool(denials_of(decode_job_result(line)))
        self._ends += 1
        self._replaced += self._ledger.end(job, state, line, self._ends, basis)
        self._board.forget(job)
        self._tally.end(was, state, trio.current_time(), denied=denied)
        self._lines.append(line)
        most = self._settings.max_failures
        if most is not None and self._tally.failures >= most and self._board.closed is None:
            self._board.closed = f"{self._tally.failures} jobs have failed"

    def _show(self) -> None:
        """Let others see what is on record."""
        lines, self._lines = self._lines, []
        if lines:
            if self._results is not None:
                self._results.add(lines, self._replaced)
            self._replaced = 0
            self._ring()

    def _ring(self) -> None:
        rung, self._rung = self._rung, trio.Event()
        rung.set()

    # --- losses ----------------------------------------------------------------------------------

    async def settle(self) -> None:
        """Find out what became of what a former process has begun."""
        for job, attempt, state in self._ledger.unsettled():
            ended = None
            if state == states.RUNNING:
                ended = await recover(self._manager, self._ledger, job, attempt)
            with self._ledger.together():
                self._adopt(job, attempt, state, ended)
        self._lines.clear()  # the file is yet to be written, from the ledger

    def show_again(self, jobs: Sequence[str]) -> None:
        """Have the jobs end once more that are left undecided, so that their results are seen."""
        with self._ledger.together():
            for job in jobs:
                result, basis = self._attempts.left(job), self._attempts.basis(job)
                self._ends += 1
                self._ledger.end(job, result.status, encode_json(result), self._ends, basis)

    def _adopt(self, job: str, attempt: int, state: str, ended: Ended | None) -> None:
        if ended is None:
            self._ledger.unbegin(job, self._attempts.basis(job))
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
            self._end(job, result.status, line, was=state, basis=conclusion.kept)
        else:
            self._ledger.put_back(job, conclusion.kept)
            self._tally.move(state, states.WAITING)

    async def _recover(self, error: HostLost) -> None:
        """Bring the host back, and find out what became of all that was on."""
        log.warning("event=host_lost why=%s", error.why)
        await self._host.restore()
        self._heard = 0
        self._untold.clear()  # what was told is looked for in the same way
        for on in list(self._board.on.values()):
            ended = await recover(self._manager, self._ledger, on.job, on.attempt)
            with self._ledger.together():
                if ended is not None:
                    self._take(ended)
                else:
                    self._put_back(on)
        self._show()

    def _put_back(self, on: OnNow) -> None:
        """Have an attempt that never began made again, under the next number."""
        self._board.leave(on.job)
        self._board.tries[on.job] -= 1
        basis = self._attempts.basis(on.job)
        line = self._attempts.line(not_begun(on.provider), on.job, on.attempt, basis)
        self._ledger.retry(on.job, line, basis)
        self._board.wait(on.job, on.provider, trio.current_time())
        self._tally.move(states.RUNNING, states.RETRYING)
