"""Main task of a batch: it takes reports, writes the ledger, and submits the next attempts.

Each iteration of its loop is one transaction of the ledger: the ended attempts, and those that
start in their place. It shows results and submits attempts only after the transaction, so a crash
can neither lose a shown result nor start an unrecorded attempt. While the ledger is locked or its
disk hangs, running attempts continue, and their ends are recorded as soon as possible.
"""

from __future__ import annotations

import logging
from collections import deque
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import trio

from sessionmgr.batch import ledger as states
from sessionmgr.batch.errors import BatchError, HostLost
from sessionmgr.batch.host import LEASE, RENEW_EVERY, AttemptSpec
from sessionmgr.batch.recovery import recover_attempt
from sessionmgr.batch.shared_pauses import SharedPauses
from sessionmgr.batch.store_identity import unknown_outcome
from sessionmgr.trio_util_types import RepeatedEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sessionmgr.batch.file_executor import FileExecutor
    from sessionmgr.batch.host import AttemptResult, Host, Report
    from sessionmgr.batch.ledger import Ledger
    from sessionmgr.batch.ledger_transactions import LedgerTransactions
    from sessionmgr.batch.scheduler import Scheduler
    from sessionmgr.manager import Manager

T = TypeVar("T")

log: Final = logging.getLogger("sessionmgr.batch")

GRACE: Final = 90.0
"""Time limit in seconds for cancelled attempts to end, longer than the manager's own limits for
closing a run and for an outage of the store.
"""


class BatchRunner:
    """Runs the main loop of one batch."""

    def __init__(
        self,
        *,
        manager: Manager,
        host: Host,
        ledger: Ledger,
        scheduler: Scheduler,
        transactions: LedgerTransactions,
        executor: FileExecutor,
    ) -> None:
        self._manager: Final = manager
        self._host: Final = host
        self._ledger: Final = ledger
        self._scheduler: Final = scheduler
        self._transactions: Final = transactions
        self._executor: Final = executor
        self.pauses: Final = SharedPauses(manager, scheduler)
        self._last_report = 0
        self._unsubmitted: Final[deque[AttemptSpec]] = deque()
        """Attempts that the ledger has as started and the host has not received yet."""
        self.ends = transactions.ends
        """The number of the last recorded end."""
        self._ends_changed: Final = RepeatedEvent()
        self._wait_scope = trio.CancelScope()
        self._stop_detail: str | None = None
        self._stop_requested: Final = trio.Event()
        self._all_cancelled = False
        self.over: Final = trio.Event()
        """Set when no more jobs will run; a crashed runner never sets it."""

    # --- called by the batch ---------------------------------------------------------------------

    async def wait_for_end(self, after: int) -> None:
        """Wait until there are ends above that number, or no more will follow."""
        await trio.lowlevel.checkpoint()
        while self.ends <= after and not self.over.is_set():
            await self._ends_changed.wait()

    def stop(self, detail: str | None) -> None:
        """Start no more jobs, and cancel the running ones."""
        if not self._stop_requested.is_set():
            self._stop_detail = detail
            self._stop_requested.set()
            self._scheduler.closed = detail or "stopped"
            self._wait_scope.cancel()

    # --- lifetime --------------------------------------------------------------------------------

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Run the jobs to their ends; then set `over`."""
        task_status.started()
        try:
            await self._run_jobs()
        except Exception as error:
            # `over` stays unset: the crash cancels the block, and with it all tasks that wait.
            log.error("The batch stopped because of an internal error. error=%s", error)
            self.stop(str(error))
            await self._shut_down()  # shielded and bounded  # noqa: ASYNC120
            raise
        except BaseException:
            self.stop("the batch was left")
            await self._shut_down()  # shielded and bounded  # noqa: ASYNC102
            self._set_over()
            raise
        self._set_over()

    async def _run_jobs(self) -> None:
        crash: Exception | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._renew_lease)
            nursery.start_soon(self._cancel_on_stop)
            try:
                await self._main_loop()
            except Exception as error:  # noqa: BLE001  # raised bare, not as the nursery's
                crash = error
                self.stop(str(error))
            nursery.cancel_scope.cancel()
        if crash is not None:
            raise crash

    def _set_over(self) -> None:
        self.over.set()
        self._ends_changed.set()

    async def _shut_down(self) -> None:
        with trio.move_on_after(GRACE, shield=True):
            # If this fails, the next run of the batch recovers the outcomes from the store.
            with suppress(HostLost, BatchError):
                await self._cancel_all()
                self._all_cancelled = True
                await self._record(lambda: self._transactions.requeue_unstarted(self._unsubmitted))
                self._unsubmitted.clear()
                await self._main_loop()
            await trio.lowlevel.checkpoint()

    async def _renew_lease(self) -> None:
        while True:
            with suppress(HostLost):  # the main loop gets this error, too
                await self._host.renew(LEASE)
            if self._is_busy():  # a stalled ledger loses nothing while attempts run
                self._executor.extend_bound()
            await trio.sleep(RENEW_EVERY)

    def _is_busy(self) -> bool:
        """Return whether an attempt has not ended yet, recorded or not."""
        on = list(self._scheduler.active.values())
        return any(self._host.activity(each.job, each.attempt) is not None for each in on)

    async def _cancel_on_stop(self) -> None:
        """Cancel running attempts once the batch stops or is left, even while a step is stalled.

        Attempts that the stalled step begins are cancelled after it.
        """
        try:
            await self._stop_requested.wait()
            await self._cancel_all()
        except trio.Cancelled:
            if self._scheduler.active:
                self.stop("the batch was left")
                with trio.CancelScope(shield=True):
                    await self._cancel_all()
            raise

    async def _record(self, step: Callable[[], T]) -> T:
        """Run a transaction, record its results, then show them."""
        done = await self._executor.run(partial(self._write, step))
        if self.ends < self._transactions.ends:
            self.ends = self._transactions.ends
            self._ends_changed.set()
        return done

    def _write(self, step: Callable[[], T]) -> T:
        done = step()
        self._transactions.write_results()
        return done

    async def _main_loop(self) -> None:
        """Take reports and start attempts until the batch has finished."""
        await trio.lowlevel.checkpoint()
        while True:
            if self._stop_requested.is_set() and not self._all_cancelled:
                self._all_cancelled = True
                await self._cancel_all()
            await self.pauses.synchronize()
            begun = await self._record(
                partial(self._transactions.start_attempts, trio.current_time())
            )
            self._unsubmitted.extend(begun.works)
            try:
                while self._unsubmitted:
                    await self._host.submit(self._unsubmitted[0])
                    self._unsubmitted.popleft()
                if begun.is_over:
                    return
                await self._wait_for_reports()
            except HostLost as error:
                await self._recover_host(error)

    async def _wait_for_reports(self) -> None:
        """Wait for reports, or until another attempt may start."""
        if self._stop_requested.is_set() and not self._all_cancelled:
            return
        reports: Sequence[Report] = ()
        wakes_at = min(self._scheduler.wakes_at(trio.current_time()), self.pauses.next_check)
        self._wait_scope = trio.CancelScope(deadline=wakes_at)
        with self._wait_scope:
            reports = await self._host.follow(self._last_report)
        if reports:
            ended = [each for _, each in reports]
            await self._record(partial(self._transactions.record_ends, ended, trio.current_time()))
            self._last_report = reports[-1][0]

    async def _cancel_all(self) -> None:
        for on in list(self._scheduler.active.values()):
            try:
                await self._host.cancel(on.job, on.attempt, self._stop_detail)
            except HostLost:
                return

    # --- losses ----------------------------------------------------------------------------------

    async def resolve_interrupted(self, *, is_recorded: bool) -> None:
        """Recover the outcomes of attempts that a former process started.

        `is_recorded`: the store in use has their sessions.
        """
        for job, attempt, state in await self._executor.run(self._ledger.interrupted_attempts):
            ended = None
            if state == states.RUNNING and is_recorded:
                ended = await self._recover_attempt(job, attempt)
            elif state == states.RUNNING:
                ended = await self._executor.run(partial(self._unknown_result, job, attempt))
            now = trio.current_time()
            await self._record(
                partial(self._transactions.record_recovered, job, attempt, state, ended, now)
            )

    async def _recover_attempt(self, job: str, attempt: int) -> AttemptResult | None:
        ledger = self._ledger
        session, others = await self._executor.run(
            lambda: (ledger.attempt(job, attempt), ledger.runs(job))
        )
        return await recover_attempt(self._manager, job, attempt, session=session, others=others)

    def _unknown_result(self, job: str, attempt: int) -> AttemptResult:
        provider = self._ledger.job(job)[0].provider or ""
        return unknown_outcome(job, attempt, provider, self._ledger.attempt(job, attempt))

    async def reissue_results(self, jobs: Sequence[str]) -> None:
        """Show the results of jobs that are left undecided."""
        await self._record(partial(self._transactions.reissue_results, jobs))

    async def _recover_host(self, error: HostLost) -> None:
        """Restart the host, and recover the outcomes of all attempts that ran on it."""
        log.warning("The host was lost and will be started again. error=%s", error.why)
        await self._host.restore()
        self._last_report = 0
        # Unsubmitted attempts are active, too, so the loop below requeues them.
        self._unsubmitted.clear()
        for on in list(self._scheduler.active.values()):
            ended = await self._recover_attempt(on.job, on.attempt)
            await self._record(
                partial(self._transactions.record_host_loss, on, ended, trio.current_time())
            )
