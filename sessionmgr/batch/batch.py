"""A batch as its user holds it: an async context manager that yields results as jobs end."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio
from msgspec.structs import replace

from sessionmgr.batch.batch_dir import LEDGER, BatchDirectory
from sessionmgr.batch.counters import BatchCounters
from sessionmgr.batch.errors import JobsInvalid, LedgerUnusable
from sessionmgr.batch.file_executor import FileExecutor
from sessionmgr.batch.import_jobs import JobImporter
from sessionmgr.batch.job_warnings import collect_warnings
from sessionmgr.batch.ledger import Ledger
from sessionmgr.batch.ledger_transactions import LedgerTransactions
from sessionmgr.batch.ownership import claim_directory
from sessionmgr.batch.progress import BatchProgress, WaitStatus
from sessionmgr.batch.results import (
    JobResult,
    ResultsFile,
    Summary,
    decode_job_result,
    write_summary,
)
from sessionmgr.batch.root_cause import batch_down_error
from sessionmgr.batch.runner import BatchRunner
from sessionmgr.batch.scheduler import Scheduler
from sessionmgr.batch.store_identity import StoreIdentity
from sessionmgr.manager import translate_group
from sessionmgr.model import Cost, IdKind, format_timestamp
from sessionmgr.otp import OtpError, Supervisor, child

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from sessionmgr.batch.host import Host
    from sessionmgr.batch.jobs_file import Jobs
    from sessionmgr.batch.ownership import OwnershipClaim
    from sessionmgr.batch.settings import BatchSettings
    from sessionmgr.manager import Manager

PAGE: Final = 64
PATIENCE: Final = 2.0
"""Seconds after which a stall is shown."""
SHOWN: Final = 3


class Batch:
    """A batch of jobs, for the length of a block; leaving the block cancels unfinished jobs."""

    def __init__(
        self,
        manager: Manager,
        jobs: Jobs,
        settings: BatchSettings,
        host: Host,
        out: str | Path | None,
        *,
        is_answered: bool = True,
    ) -> None:
        self._manager: Final = manager
        self._jobs: Final = jobs
        self._settings: Final = settings
        self._host: Final = host
        self._out: Final = out
        self._is_answered: Final = is_answered
        """Whether an approver answers the agents' requests."""
        self._directory: BatchDirectory | None = None
        self._executor: FileExecutor | None = None
        self._ledger: Ledger | None = None
        self._results: ResultsFile | None = None
        self._reader: JobImporter | None = None
        self._scheduler: Scheduler | None = None
        self._counters: BatchCounters | None = None
        self._runner: BatchRunner | None = None
        self._root: Supervisor | None = None
        self._first = 0
        self._stopped: str | None = None
        self._claim: OwnershipClaim | None = None
        self._takeover_warnings: tuple[str, ...] = ()
        """A warning, if the directory belonged to another jobs file."""
        self._started_at = ""
        self._summary: Summary | None = None
        self.id = ""
        """Id of the batch; reruns keep it."""
        self.warnings: tuple[str, ...] = ()
        """Warnings about valid settings and jobs that may not be intended."""

    # --- the block -------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """Read and check all jobs, then start.

        Raises:
            JobsInvalid: Some jobs are invalid; nothing was started.
            BatchBusy: Another process runs the batch.
            OutDirectoryTaken: The directory holds the batch of another jobs file.
            StoreMismatch: The attempts to continue are in another store.
            LedgerUnusable: The directory or the ledger cannot be used.
        """
        if self._counters is not None:
            raise RuntimeError("a batch runs only once; call run_batch again")
        self._started_at = format_timestamp(self._manager.now())
        counters = self._counters = BatchCounters(trio.current_time())
        where = "the ledger" if self._out is None else str(Path(self._out) / LEDGER)
        executor = self._executor = FileExecutor(where)
        try:
            await self._open(executor, counters)
        except JobsInvalid:
            await self._close(vanishes=True)  # `_close` is shielded and bounded  # noqa: ASYNC120
            raise
        except BaseException:
            await self._close()  # `_close` is shielded and bounded  # noqa: ASYNC102
            raise
        return self

    async def _open(self, executor: FileExecutor, counters: BatchCounters) -> None:
        ledger = await executor.run(self._open_ledger)
        scheduler = Scheduler(ledger, self._settings)
        transactions = await executor.run(lambda: self._make_steps(ledger, scheduler, counters))
        self._first = transactions.ends
        runner = self._runner = BatchRunner(
            manager=self._manager,
            host=self._host,
            ledger=ledger,
            scheduler=scheduler,
            transactions=transactions,
            executor=executor,
        )
        # Interrupted attempts are resolved before the import: whether a job's changed work is
        # accepted depends on whether the job has completed.
        identity = StoreIdentity(
            self._manager, executor, ledger, self._out, self._settings.retry_from
        )
        await identity.compare()
        await runner.resolve_interrupted(is_recorded=identity.is_in_use)
        assert self._reader is not None
        await self._reader.import_all(self._claim, identity.require_known)
        await runner.reissue_results(self._reader.undecided)
        directory_warnings = await executor.run(
            lambda: self._start_first_attempts(ledger, scheduler, transactions)
        )
        self.warnings = (
            *self._takeover_warnings,
            *collect_warnings(self._reader, directory_warnings, is_answered=self._is_answered),
        )
        if self._settings.ignore_pauses:
            await runner.pauses.clear()
        await identity.mark()
        self._scheduler = scheduler
        executor.is_shielded = True
        await self._start(runner)

    # --- in the executor's thread ----------------------------------------------------------------

    def _open_ledger(self) -> Ledger:
        assert self._executor is not None
        if self._out is not None:
            self._directory = BatchDirectory(self._out)
        path = self._directory.ledger if self._directory else None
        ledger = self._ledger = Ledger(path, self._executor.keep_waiting)
        self._reader = JobImporter(
            self._manager,
            self._jobs,
            self._settings,
            ledger,
            self._executor,
            self._host.readiness,
        )
        if self._out is not None:
            source, force = self._reader.source, self._settings.force
            claimed = self._claim = claim_directory(ledger, self._out, source, force=force)
            if claimed is not None and claimed.before is not None:
                before = claimed.before
                said = f"{self._out} held the batch of {before}; --force has given it to {source}"
                self._takeover_warnings = (said,)
        self.id = ledger.metadata("batch") or ""
        if not self.id:
            self.id = ledger.metadata("batch", self._manager.new_id(IdKind.BATCH)) or ""
        return ledger

    def _make_steps(
        self, ledger: Ledger, scheduler: Scheduler, counters: BatchCounters
    ) -> LedgerTransactions:
        return LedgerTransactions(
            batch_id=self.id,
            manager=self._manager,
            ledger=ledger,
            scheduler=scheduler,
            counters=counters,
            settings=self._settings,
            out=self._directory.path if self._directory else None,
        )

    def _start_first_attempts(
        self, ledger: Ledger, scheduler: Scheduler, transactions: LedgerTransactions
    ) -> list[str]:
        """Prepare the first attempt, and return warnings."""
        transactions.load_counters()
        if self._directory is not None:
            self._results = ResultsFile(self._directory.results, ledger.valid_results)
            transactions.set_results_file(self._results)
        scheduler.load_providers()
        return self._shared_directory_warnings(ledger)

    def _finish(self, summary: Summary) -> None:
        """Write the summary and close the files."""
        if self._directory is not None:
            write_summary(self._directory.summary, summary)

    def _close_files(self, *, vanishes: bool) -> None:
        directory = self._directory
        with ExitStack() as stack:
            if directory is not None:
                stack.callback(directory.close)
                if vanishes and directory.is_new:  # while it is still locked
                    stack.callback(directory.discard)
            for each in (self._ledger, self._results):
                if each is not None:
                    stack.callback(each.close)
        self._results = self._ledger = self._directory = None

    # --- the end of the block --------------------------------------------------------------------

    async def _close(self, *, vanishes: bool = False) -> None:
        assert self._executor is not None
        await self._executor.close(partial(self._close_files, vanishes=vanishes))

    async def _start(self, runner: BatchRunner) -> None:
        if self._stopped is not None:
            runner.stop(self._stopped)
        root = Supervisor(
            child(self._host.serve, id="host", restart="transient"),
            child(runner.run, id="conductor", restart="transient", shutdown=float("inf")),
            name="batch",
            strategy="rest_for_one",
            max_restarts=0,
        )
        try:
            await root.__aenter__()
        except OtpError as error:
            raise batch_down_error(error) from error
        self._root = root

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        """Cancel unfinished jobs, wait for their end, and write the summary."""
        assert self._root is not None
        assert self._counters is not None
        assert self._executor is not None
        try:
            swallowed = await self._root.__aexit__(exc_type, exc, traceback)  # noqa: ASYNC102
            if self._results is not None:
                await self._executor.run(self._results.complete)  # noqa: ASYNC102
            return swallowed
        except OtpError as error:
            if error is exc:
                raise
            raise batch_down_error(error) from error
        except BaseExceptionGroup as group:
            raise translate_group(group, exc, batch_down_error) from None
        finally:
            self._counters.stop_clock(trio.current_time())
            summary = self._summary = self.summary()
            # The exception that leaves the block has already reported the problem of the ledger.
            with suppress(LedgerUnusable):
                await self._executor.run(lambda: self._finish(summary))  # noqa: ASYNC102
            await self._close()  # `_close` is shielded and bounded  # noqa: ASYNC102

    def _shared_directory_warnings(self, ledger: Ledger) -> list[str]:
        if self._settings.at_once == 1:
            return []
        shared = ledger.shared_directories()
        said = [
            f"{jobs} jobs share the directory {directory}, and up to"
            f" {min(jobs, self._settings.at_once)} of them write to it at once; give each job its"
            " own checkout or worktree"
            for directory, jobs in shared
        ]
        if len(said) > SHOWN:
            said[SHOWN:] = [f"{len(said) - SHOWN} other directories are shared, too"]
        return said

    # --- use inside the block --------------------------------------------------------------------

    def __aiter__(self) -> ResultCursor:
        """Return a new cursor over this run's results, from the first one."""
        assert self._runner is not None, "results are available only inside the block of the batch"
        return ResultCursor(self, self._runner, self._first)

    async def page(self, after: int) -> list[tuple[int, bytes]]:
        """Return some ended jobs after a number: each one's number and result line.

        Args:
            after: The number of the last end to skip.
        """
        assert self._executor is not None
        ledger = self._ledger
        if ledger is None:
            await trio.lowlevel.checkpoint()
            return []
        return await self._executor.read(lambda: list(ledger.results(after, PAGE)))

    async def wait(self) -> Summary:
        """Wait until the batch has ended, and return its summary."""
        assert self._runner is not None, "wait() works only inside the block of the batch"
        await self._runner.over.wait()
        return self.summary()

    def stop(self, detail: str | None = None) -> None:
        """Start no more jobs, and cancel the running ones; their results give the reason.

        Args:
            detail: The reason, for the record; by default "stopped".
        """
        self._stopped = detail or "stopped"
        if self._runner is not None:
            self._runner.stop(detail)

    def progress(self) -> BatchProgress:
        """Return the current progress."""
        counters, scheduler = self._counters, self._scheduler
        if counters is None or self._executor is None:
            return BatchProgress(total=None)
        now = trio.current_time()
        if scheduler is None:
            read = self._reader.count if self._reader else 0
            progress = BatchProgress(total=None, waiting=read, elapsed=counters.elapsed(now))
        else:
            progress = counters.progress(scheduler, self._host, now, wall=self._manager.now())
        return replace(progress, waits=self._waits_for_decision(self._executor.stall(now)))

    def _waits_for_decision(self, ledger: WaitStatus | None) -> tuple[WaitStatus, ...]:
        store = self._manager.status().store
        waits = [] if ledger is None else [ledger]
        if store.waiting >= PATIENCE:
            waits.append(WaitStatus(what="store", seconds=store.waiting, why=store.why))
        return tuple(waits)

    def summary(self) -> Summary:
        """Return the summary so far."""
        if self._summary is not None:
            return self._summary
        counters, scheduler = self._counters, self._scheduler
        assert counters is not None, (
            "summary is available only from the start of the block of the batch"
        )
        assert scheduler is not None, (
            "summary is available only from the start of the block of the batch"
        )
        statuses, jobs = counters.statuses, sum(counters.counts.values())
        not_run = jobs - sum(statuses.values())
        return Summary(
            batch=self.id,
            jobs=jobs,
            statuses={**statuses, "not_run": not_run} if not_run else statuses,
            failures=counters.failures_by_kind,
            attempts=counters.all_attempts,
            tokens=counters.usage,
            cost=counters.cost or Cost(),
            started_at=self._started_at,
            ended_at=format_timestamp(self._manager.now()),
            duration=counters.elapsed(trio.current_time()),
            stopped=scheduler.closed,
            providers_stopped=dict(scheduler.stopped),
            warnings=self.warnings,
            attempts_now=counters.attempts,
            left=counters.left,
            denied_jobs=counters.denied,
            denials=tuple(counters.denials),
            undecided=dict(counters.undecided),
        )


class ResultCursor:
    """A cursor over the results of a batch, in the order in which its jobs end."""

    def __init__(self, batch: Batch, runner: BatchRunner, after: int) -> None:
        self._batch: Final = batch
        self._runner: Final = runner
        self._after = after
        self._page: list[tuple[int, bytes]] = []

    def __aiter__(self) -> ResultCursor:
        """Return this cursor."""
        return self

    async def __anext__(self) -> JobResult:
        """Wait for the next result and return it."""
        if not self._page:
            await self._runner.wait_for_end(self._after)
            self._page = (await self._batch.page(self._after))[::-1]
        if not self._page:
            raise StopAsyncIteration
        self._after, line = self._page.pop()
        return decode_job_result(line)
