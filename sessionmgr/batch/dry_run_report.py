"""Dry run: reads, checks and negotiates every job, and starts and stores nothing."""

from __future__ import annotations

from collections import deque
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec
import trio

from sessionmgr.batch import ledger as states
from sessionmgr.batch.batch_dir import LEDGER, BatchDirectory, contains_batch
from sessionmgr.batch.file_executor import FileExecutor
from sessionmgr.batch.import_jobs import JobImporter
from sessionmgr.batch.job_warnings import collect_warnings
from sessionmgr.batch.ledger import Ledger
from sessionmgr.batch.ownership import claim_directory
from sessionmgr.batch.readiness import provider_readiness
from sessionmgr.batch.restart import RetryFrom, StartMode
from sessionmgr.model import Negotiation, Permission

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from sessionmgr.batch.import_jobs import ImportedJob
    from sessionmgr.batch.jobs_file import Jobs
    from sessionmgr.batch.settings import BatchSettings
    from sessionmgr.manager import Manager

Action: TypeAlias = Literal["run", "resume", "done", "left", "undecided"]


class PlannedJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job of a dry run: what the batch would do with it, and what the provider would grant.

    The batch would run or continue the job, keep its result, skip it this time, or leave it for a
    decision (`retry_from`).
    """

    job: str
    line: int
    provider: str
    action: Action
    negotiation: Negotiation | None
    """None if the job would be refused now; `permission` is None then, too."""
    permission: Permission | None


class DryRun:
    """A dry run, for the length of a block: a cursor over the planned jobs."""

    def __init__(
        self,
        manager: Manager,
        jobs: Jobs,
        settings: BatchSettings,
        out: str | Path | None,
        *,
        is_answered: bool,
    ) -> None:
        self._manager: Final = manager
        self._jobs: Final = jobs
        self._settings: Final = settings
        self._out: Final = out
        self._is_answered: Final = is_answered
        self._executor: FileExecutor | None = None
        self._resources: Final = ExitStack()
        self._ledger: Ledger | None = None
        self._reader: JobImporter | None = None
        self._planned: Final[deque[PlannedJob]] = deque()
        self._takeover_warnings: tuple[str, ...] = ()
        """A warning, if the directory belongs to another jobs file."""

    async def __aenter__(self) -> Self:
        """Open the existing ledger, if there is one, for reading.

        Raises:
            BatchBusy: Another process runs the batch.
            OutDirectoryTaken: The directory holds the batch of another jobs file.
            LedgerUnusable: The directory or the ledger cannot be used.
        """
        where = "the ledger" if self._out is None else str(Path(self._out) / LEDGER)
        executor = self._executor = FileExecutor(where)
        try:
            self._reader = await executor.run(lambda: self._open_ledger(executor))
            await self._reader.begin()
        except BaseException:
            # `close` is shielded and bounded.
            await executor.close(self._resources.close)  # noqa: ASYNC102
            raise
        return self

    def _open_ledger(self, executor: FileExecutor) -> JobImporter:
        directory = None
        if self._out is not None and contains_batch(self._out):
            directory = BatchDirectory(self._out)
            self._resources.callback(directory.close)
        ledger = self._ledger = Ledger(
            directory.ledger if directory else None, executor.keep_waiting
        )
        self._resources.callback(ledger.close)
        ledger.begin_writing()
        self._resources.callback(ledger.roll_back)
        ready = partial(provider_readiness, self._manager)
        reader = JobImporter(self._manager, self._jobs, self._settings, ledger, executor, ready)
        if self._out is not None:
            claimed = claim_directory(ledger, self._out, reader.source, force=self._settings.force)
            if claimed is not None and claimed.before is not None:
                said = f"{self._out} holds the batch of {claimed.before}; --force takes it over"
                self._takeover_warnings = (said,)
        return reader

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Discard the temporary ledger."""
        assert self._executor is not None
        # `close` is shielded and bounded.
        await self._executor.close(self._resources.close)  # noqa: ASYNC102

    def __aiter__(self) -> Self:
        """Return this cursor."""
        return self

    async def __anext__(self) -> PlannedJob:
        """Read the next job and return what the batch would do with it.

        Raises:
            JobsInvalid: At the end: some jobs are invalid.
        """
        assert self._executor is not None
        assert self._reader is not None
        await trio.lowlevel.checkpoint()
        while not self._planned:
            reads = await self._reader.import_chunk()
            if reads is None:
                raise StopAsyncIteration
            self._planned.extend(await self._executor.run(partial(self._plan_all, reads)))
        return self._planned.popleft()

    def _plan_all(self, reads: list[ImportedJob]) -> list[PlannedJob]:
        return [self._plan(read) for read in reads]

    def _plan(self, read: ImportedJob) -> PlannedJob:
        job = read.entered.job
        return PlannedJob(
            job=job.id,
            line=read.entered.line,
            provider=job.provider or "",
            action=self._action(read),
            negotiation=None if read.grant is None else read.grant.negotiation,
            permission=None if read.grant is None else read.grant.permission,
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings about valid but possibly unintended jobs among those read so far."""
        if self._reader is None:
            return self._takeover_warnings
        return (
            *self._takeover_warnings,
            *collect_warnings(self._reader, (), is_answered=self._is_answered),
        )

    def _action(self, read: ImportedJob) -> Action:
        assert self._ledger is not None
        if read.is_undecided:
            return "undecided"
        if read.state not in states.UNENDED:
            return "done"
        if not read.entered.chosen:
            return "left"
        policy = self._settings.retry_from
        if read.state == states.RUNNING:  # its outcome is determined when the batch runs
            return "run" if policy is RetryFrom.FRESH else "resume"
        basis = self._ledger.job(read.entered.job.id)[2]
        return "resume" if basis.start(policy) is StartMode.RESUME else "run"
