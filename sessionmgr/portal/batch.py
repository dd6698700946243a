"""A batch of jobs in a portal: a context manager and an iterator of results."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.batch import run_batch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from sessionmgr.adapter import Approve
    from sessionmgr.batch import Batch, BatchOptions, JobResult, Jobs, ResultCursor, Summary
    from sessionmgr.portal.approver import ApprovalQueue
    from sessionmgr.portal.loop_thread import LoopThread


class PortalBatch:
    """A batch of a portal, for the length of a block; `Portal.run_batch` returns it.

    Entering the block reads and checks all jobs. Leaving it cancels unfinished jobs, and writes the
    summary. Each iteration yields every result once, in the order in which jobs end.
    """

    def __init__(
        self,
        loop: LoopThread,
        queue: ApprovalQueue | None,
        jobs: Jobs,
        out: str | Path | None,
        approve: Approve | None,
        how: BatchOptions,
    ) -> None:
        self._loop: Final = loop
        self._queue: Final = queue
        self._batch: Final[Batch] = run_batch(loop.manager, jobs, out=out, approve=approve, **how)
        self._leave: Final = trio.Event()
        self._entered: Final = trio.Event()
        self._is_open = False
        self._reads: Final[set[trio.CancelScope]] = set()
        """Iterations that wait for a result, while the batch is open."""
        self._block: Future[None] | None = None

    def __enter__(self) -> Self:
        """Read and check all jobs, then start.

        Raises:
            JobsInvalid: Some jobs are invalid; nothing was started.
            BatchBusy: Another process runs the batch.
            OutDirectoryTaken: The directory holds the batch of another jobs file.
            StoreMismatch: The attempts to continue are in another store.
            LedgerUnusable: The directory or the ledger cannot be used.
            PortalClosed: The portal is closed.
        """
        self._loop.require_other_thread("run_batch")
        self._block = self._loop.submit("run_batch", self._hold)
        try:
            self._loop.call("run_batch", self._entered.wait)
        except BaseException:
            self._block.cancel()
            raise
        if not self._is_open:
            self._loop.wait("run_batch", self._block)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Cancel unfinished jobs, and wait for their end."""
        assert self._block is not None
        self._loop.call_soon(self._leave.set)
        try:
            self._loop.wait("run_batch", self._block)
        except Exception:
            if exc is None:
                raise

    def __iter__(self) -> Iterator[JobResult]:
        """Iterate over the results; each iteration begins with the first one.

        Raises:
            PortalClosed: The portal is closed, or was closed meanwhile.
            PortalDeadlock: A callback in the portal's own thread iterates.
        """
        self._loop.require_other_thread("run_batch")
        return self._results(self._batch.__aiter__())

    @property
    def summary(self) -> Summary:
        """The summary of the batch so far; after the block, that of the whole batch."""
        return self._batch.summary()

    async def _hold(self) -> None:
        """Keep the batch open until its block is left."""
        try:
            async with self._batch:
                self._is_open = True
                self._entered.set()
                await self._leave.wait()
        finally:
            self._entered.set()
            self._is_open = False
            for read in self._reads:
                read.cancel()

    async def _next(self, results: ResultCursor) -> JobResult | None:
        if not self._is_open:
            return None
        with trio.CancelScope() as read:
            self._reads.add(read)
            try:
                return await anext(results, None)
            finally:
                self._reads.discard(read)
        return None

    def _results(self, results: ResultCursor) -> Iterator[JobResult]:
        while True:
            future = self._loop.submit("run_batch", partial(self._next, results))
            if self._queue is not None:
                self._queue.wait(future, None)
            result = self._loop.wait("run_batch", future)
            if result is None:
                break
            yield result
        if not self._is_open and self._block is not None:  # the batch has failed: raise its error
            self._loop.wait("run_batch", self._block)
