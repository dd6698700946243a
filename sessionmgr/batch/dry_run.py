"""A dry run: every job read, checked and negotiated for, and none started, nor noted."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec
import trio

from sessionmgr.batch import ledger as states
from sessionmgr.batch.denials import NO_RULES
from sessionmgr.batch.ledger import Ledger
from sessionmgr.batch.ownership import claim
from sessionmgr.batch.place import Place
from sessionmgr.batch.readiness import readiness_of
from sessionmgr.batch.reading import Reader
from sessionmgr.batch.restart import RetryFrom, Start
from sessionmgr.model import Negotiation, Permission

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from sessionmgr.batch.jobs_file import Jobs
    from sessionmgr.batch.reading import Read
    from sessionmgr.batch.settings import Settings
    from sessionmgr.manager import Manager

Action: TypeAlias = Literal["run", "resume", "done", "left", "undecided"]


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """What would become of a job, and what it would be granted.

    It would be run, or gone on with; it is done; it is left for another time; or it waits for a
    decision (`retry_from`).
    """

    job: str
    line: int
    provider: str
    action: Action
    negotiation: Negotiation | None
    """None, as is `permission`: as things are now it would be refused, were it to be done."""
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
        self._kept = ExitStack()
        self._ledger: Ledger | None = None
        self._is_answered: Final = is_answered
        self._reader: Reader | None = None
        self._reads: Iterator[Read] = iter(())

    async def __aenter__(self) -> Self:
        """Look at what stands already.

        Raises:
            BatchBusy: Another process is at it.
            OutDirectoryTaken: Its directory holds the batch of another file.
            LedgerUnusable: Its directory or ledger cannot be used.
        """
        await trio.lowlevel.checkpoint()
        with ExitStack() as stack:
            place = None
            if self._out is not None and Place.is_begun(self._out):
                place = Place(self._out)
                stack.callback(place.close)
            ledger = self._ledger = Ledger(place.ledger if place else None)
            stack.callback(ledger.close)
            stack.enter_context(ledger.in_thought())
            ready = partial(readiness_of, self._manager)
            reader = Reader(self._manager, self._jobs, self._settings, ledger, ready)
            if self._out is not None:
                claim(ledger, self._out, reader.source, force=self._settings.force)
            self._reader, self._reads = reader, reader.reads()
            self._kept = stack.pop_all()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Forget it all."""
        self._kept.close()

    def __aiter__(self) -> Self:
        """Iterate over what is left."""
        return self

    async def __anext__(self) -> Planned:
        """Read the next job and say what would become of it.

        Raises:
            JobsInvalid: At the end: some of them cannot be done.
        """
        await trio.lowlevel.checkpoint()
        read = next(self._reads, None)
        if read is None:
            raise StopAsyncIteration
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
        """What is not forbidden, and may not be meant, of the jobs that were read so far."""
        asks = self._reader is not None and self._reader.asks and not self._is_answered
        return (NO_RULES,) if asks else ()

    def _action(self, read: Read) -> Action:
        assert self._ledger is not None
        assert self._reader is not None
        if read.entered.job.id in self._reader.undecided[-1:]:
            return "undecided"
        if read.state not in states.UNENDED:
            return "done"
        if not read.entered.chosen:
            return "left"
        policy = self._settings.retry_from
        if read.state == states.RUNNING:  # what became of it is found out when it is run
            return "run" if policy is RetryFrom.FRESH else "resume"
        basis = self._ledger.job(read.entered.job.id)[2]
        return "resume" if basis.start(policy) is Start.RESUME else "run"
