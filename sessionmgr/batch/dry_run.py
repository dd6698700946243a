"""A dry run: every job read, checked and negotiated for, and none started, nor noted."""

from __future__ import annotations

from collections import deque
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec
import trio

from sessionmgr.batch import ledger as states
from sessionmgr.batch.executor import Executor
from sessionmgr.batch.ledger import Ledger
from sessionmgr.batch.ownership import claim
from sessionmgr.batch.place import LEDGER, Place, is_begun
from sessionmgr.batch.readiness import readiness_of
from sessionmgr.batch.reading import Reader
from sessionmgr.batch.restart import RetryFrom, Start
from sessionmgr.batch.unintended import warnings_of
from sessionmgr.model import Negotiation, Permission

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from sessionmgr.batch.jobs_file import Jobs
    from sessionmgr.batch.reading import Read
    from sessionmgr.batch.settings import Settings
    from sessionmgr.manager import Manager

Action: TypeAlias = Literal["run", "resume", "done", "left", "undecided"]


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """What would become of a job, and what it would be granted.

    Run or continue it, keep its result, leave it for another time, or wait for a decision
    (`retry_from`).
    """

    job: str
    line: int
    provider: str
    action: Action
    negotiation: Negotiation | None
    """None if the job would be refused now; then `permission` is None, too."""
    permission: Permission | None


class DryRun:
    """A batch that is only thought of, for the length of a block: a cursor over its jobs."""

    def __init__(
        self,
        manager: Manager,
        jobs: Jobs,
        settings: Settings,
        out: str | Path | None,
        *,
        is_answered: bool,
    ) -> None:
        self._manager: Final = manager
        self._jobs: Final = jobs
        self._settings: Final = settings
        self._out: Final = out
        self._is_answered: Final = is_answered
        self._executor: Executor | None = None
        self._kept: Final = ExitStack()
        self._ledger: Ledger | None = None
        self._reader: Reader | None = None
        self._planned: Final[deque[Planned]] = deque()
        self._taken_over: tuple[str, ...] = ()
        """A warning, if the directory belongs to another jobs file."""

    async def __aenter__(self) -> Self:
        """Look at what stands already.

        Raises:
            BatchBusy: Another process is at it.
            OutDirectoryTaken: Its directory holds the batch of another jobs file.
            LedgerUnusable: Its directory or ledger cannot be used.
        """
        where = "the ledger" if self._out is None else str(Path(self._out) / LEDGER)
        executor = self._executor = Executor(where)
        try:
            self._reader = await executor.run(lambda: self._open(executor))
            await self._reader.begin()
        except BaseException:
            # Shielded and bounded in there.
            await executor.close(self._kept.close)  # noqa: ASYNC102
            raise
        return self

    def _open(self, executor: Executor) -> Reader:
        place = None
        if self._out is not None and is_begun(self._out):
            place = Place(self._out)
            self._kept.callback(place.close)
        ledger = self._ledger = Ledger(place.ledger if place else None, executor.keep_waiting)
        self._kept.callback(ledger.close)
        ledger.begin_writing()
        self._kept.callback(ledger.roll_back)
        ready = partial(readiness_of, self._manager)
        reader = Reader(self._manager, self._jobs, self._settings, ledger, executor, ready)
        if self._out is not None:
            claimed = claim(ledger, self._out, reader.source, force=self._settings.force)
            if claimed is not None and claimed.before is not None:
                said = f"{self._out} holds the batch of {claimed.before}; --force takes it over"
                self._taken_over = (said,)
        return reader

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Forget it all."""
        assert self._executor is not None
        # Shielded and bounded in there.
        await self._executor.close(self._kept.close)  # noqa: ASYNC102

    def __aiter__(self) -> Self:
        """Iterate over what is left."""
        return self

    async def __anext__(self) -> Planned:
        """Read the next job and say what would become of it.

        Raises:
            JobsInvalid: At the end: some of them cannot be done.
        """
        assert self._executor is not None
        assert self._reader is not None
        await trio.lowlevel.checkpoint()
        while not self._planned:
            reads = await self._reader.next_reads()
            if reads is None:
                raise StopAsyncIteration
            self._planned.extend(await self._executor.run(partial(self._plan_all, reads)))
        return self._planned.popleft()

    def _plan_all(self, reads: list[Read]) -> list[Planned]:
        return [self._plan(read) for read in reads]

    def _plan(self, read: Read) -> Planned:
        job = read.entered.job
        return Planned(
            job=job.id,
            line=read.entered.line,
            provider=job.provider or "",
            action=self._action(read),
            negotiation=None if read.grant is None else read.grant.negotiation,
            permission=None if read.grant is None else read.grant.permission,
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return warnings about valid but possibly unintended jobs among those read so far."""
        if self._reader is None:
            return self._taken_over
        return (
            *self._taken_over,
            *warnings_of(self._reader, (), is_answered=self._is_answered),
        )

    def _action(self, read: Read) -> Action:
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
        return "resume" if basis.start(policy) is Start.RESUME else "run"
