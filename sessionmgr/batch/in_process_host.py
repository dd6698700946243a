"""Host in this process: attempts are runs of its manager."""

from __future__ import annotations

import logging
import math
from collections import deque
from typing import TYPE_CHECKING, Final

import msgspec
import trio

from sessionmgr.adapter import StartRefused
from sessionmgr.batch.activity import STOPPING, ActivityTracker
from sessionmgr.batch.attempt_dir import AttemptDirectory
from sessionmgr.batch.denials import denials_of
from sessionmgr.batch.errors import HostLost
from sessionmgr.batch.host import AttemptActivity, AttemptResult, AttemptSpec
from sessionmgr.batch.readiness import provider_readiness
from sessionmgr.batch.run_request import run_request_for_job, start_failure
from sessionmgr.manager import resume_message, was_interrupted_unanswered
from sessionmgr.model import Failure, FailureKind, RunResult, RunStatus
from sessionmgr.process import ProcessError
from sessionmgr.store import LeaseHeld, StoreError
from sessionmgr.trio_util_types import RepeatedEvent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.adapter import Approve, Health
    from sessionmgr.batch.host import Report
    from sessionmgr.batch.job import Job
    from sessionmgr.manager import Manager, RunHandle, SessionHandle
    from sessionmgr.model import Json, Run


log: Final = logging.getLogger("sessionmgr.batch")

COPIES: Final = 4
"""Number of threads that write an attempt's files beside its results."""
ENDED: Final = "the batch ended or crashed"
CATCH_UP: Final = 0.5
"""Seconds to wait for a late renewal before the lease ends."""
CLOSE: Final = 5.0
"""Time limit in seconds for closing the session of an ended job."""


class _RunningAttempt:
    """A running attempt of this host."""

    def __init__(self, work: AttemptSpec) -> None:
        self.work: Final = work
        self.run: RunHandle | None = None
        self.doing: Final = ActivityTracker(trio.current_time())
        self.cancelled = False
        self.superseded = False
        self.detail: str | None = None

    def end_run(self) -> None:
        """Cancel or supersede the attempt's run, if it has one."""
        if self.run is None:
            return
        if self.superseded:
            self.run.supersede(self.detail)
        else:
            self.run.cancel(self.detail)

    def activity(self) -> AttemptActivity:
        """Return the current activity."""
        doing = self.doing
        return AttemptActivity(
            doing=doing.text,
            doing_for=trio.current_time() - doing.since,
            tokens=doing.tokens,
            usd=doing.usd,
        )


class InProcessHost:
    """Runs attempts as runs of a manager."""

    def __init__(self, manager: Manager, *, approve: Approve | None = None) -> None:
        self._manager: Final = manager
        self._approve: Final = approve
        self._running: Final[dict[tuple[str, int], _RunningAttempt]] = {}
        self._reports: Final[deque[Report]] = deque()
        self._last = 0
        self._reported: Final = RepeatedEvent()
        self._nursery: trio.Nursery | None = None
        self._copying: Final = trio.CapacityLimiter(COPIES)
        self._lease = trio.CancelScope()

    async def serve(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Serve until cancelled; the nursery holds the tasks that follow the attempts.

        Args:
            task_status: The status by which the caller learns of the start.
        """
        try:
            async with trio.open_nursery() as self._nursery:
                task_status.started()
                await self._watch_lease()
        finally:
            self._nursery = None
            self._reported.set()

    async def _watch_lease(self) -> None:
        while True:
            with self._lease:
                await trio.sleep_forever()
            # If this process was suspended meanwhile, the renewal is as late as this task.
            lease = self._lease = trio.CancelScope()
            await trio.sleep(CATCH_UP)
            if lease.deadline == math.inf:
                for running in self._running.values():
                    self._cancel(running, "the batch no longer responds")

    def readiness(self, job: Job) -> Health:
        """Report whether the manager can use a job's provider.

        Args:
            job: The job.
        """
        return provider_readiness(self._manager, job)

    async def submit(self, work: AttemptSpec) -> None:
        """Start an attempt; it supersedes an earlier attempt at the same job.

        Args:
            work: The attempt and its job.
        """
        await trio.lowlevel.cancel_shielded_checkpoint()
        if self._nursery is None:
            raise HostLost(ENDED)
        for running in self._running.values():
            if running.work.job.id == work.job.id and running.work.attempt < work.attempt:
                running.superseded = True
                self._cancel(running, f"superseded by attempt {work.attempt}")
        running = _RunningAttempt(work)
        self._running[work.job.id, work.attempt] = running
        self._nursery.start_soon(self._run_attempt, running)

    async def cancel(self, job: str, attempt: int, detail: str | None) -> None:
        """Cancel an attempt.

        Args:
            job: The id of the job.
            attempt: The number of the attempt.
            detail: The reason, for the record.
        """
        await trio.lowlevel.checkpoint()
        running = self._running.get((job, attempt))
        if running is not None:
            self._cancel(running, detail)

    def _cancel(self, running: _RunningAttempt, detail: str | None) -> None:
        running.cancelled, running.detail = True, detail
        running.doing.set_text(STOPPING, trio.current_time())
        running.end_run()

    async def follow(self, after: int) -> Sequence[Report]:
        """Wait for reports.

        Args:
            after: The number of the last report that is settled.
        """
        await trio.lowlevel.checkpoint()
        while self._reports and self._reports[0][0] <= after:
            self._reports.popleft()
        while not self._reports:
            if self._nursery is None:
                raise HostLost(ENDED)
            await self._reported.wait()
        return tuple(self._reports)

    async def renew(self, seconds: float) -> None:
        """Renew the lease; without a renewal, the host cancels all attempts.

        Args:
            seconds: Seconds from now.
        """
        await trio.lowlevel.checkpoint()
        self._lease.deadline = trio.current_time() + seconds

    def activity(self, job: str, attempt: int) -> AttemptActivity | None:
        """Return the current activity of an attempt.

        Args:
            job: The id of the job.
            attempt: The number of the attempt.
        """
        running = self._running.get((job, attempt))
        return None if running is None else running.activity()

    def activities(self) -> dict[tuple[str, int], AttemptActivity]:
        """Return the current activities of all attempts."""
        return {key: running.activity() for key, running in self._running.items()}

    async def restore(self) -> None:
        """Do nothing: this host is lost only when its block ends."""
        await trio.lowlevel.checkpoint()
        if self._nursery is None:
            raise HostLost(ENDED)

    # --- one attempt -----------------------------------------------------------------------------

    async def _run_attempt(self, running: _RunningAttempt) -> None:
        """Run an attempt, and report its end."""
        work = running.work
        session: SessionHandle | None = None
        try:
            session = await self._open_session(work)
            ended = await self._attempt(running, session)
        except (StartRefused, ProcessError, StoreError) as error:
            is_begun = running.run is not None
            ended = (
                await self._end_unfollowed(running, error)
                if is_begun
                else _failed_attempt(work, start_failure(error))
            )
        except Exception as error:  # this attempt fails; the other jobs continue
            log.exception("An attempt crashed. job=%s attempt=%d", work.job.id, work.attempt)
            ended = await self._end_unfollowed(running, error)
        del self._running[work.job.id, work.attempt]
        self._last += 1
        self._reports.append((self._last, ended))
        self._reported.set()
        # The session is closed after the report, so that the batch can start another job meanwhile.
        if session is None:
            return
        is_done = ended.result.status is RunStatus.COMPLETED
        if ended.resumable and not is_done:  # the session stays open: the batch may resume it
            session.release()
            return
        with trio.move_on_after(CLOSE, shield=True):
            await self._close_session(session)

    async def _end_unfollowed(self, running: _RunningAttempt, error: Exception) -> AttemptResult:
        """End an attempt that could not be followed, and return its known result."""
        failure = Failure(
            kind=FailureKind.MANAGER_CRASHED,
            message=f"the attempt could not be followed: {type(error).__name__}: {error}",
        )
        if running.run is None:
            return _failed_attempt(running.work, failure)
        running.run.cancel(failure.message)
        result = await running.run.result()
        result = msgspec.structs.replace(
            result, status=RunStatus.FAILED, failure=failure, reason=None, detail=None
        )
        return AttemptResult(job=running.work.job.id, attempt=running.work.attempt, result=result)

    async def _close_session(self, session: SessionHandle) -> None:
        try:
            await session.close()
        except (StartRefused, StoreError) as error:
            log.warning(
                "The session of an ended job could not be closed. session=%s error=%s",
                session.id,
                error,
            )

    async def _attempt(self, running: _RunningAttempt, session: SessionHandle) -> AttemptResult:
        work = running.work
        request = run_request_for_job(work.job, approve=self._approve)
        if work.resume is not None:
            runs = await self._manager.settled(work.session_id)
            # If so, the session may lack the prompt: Codex forgets the prompt of a turn that is
            # interrupted at its start.
            is_lost = all(map(was_interrupted_unanswered, runs))
            request = msgspec.structs.replace(
                request,
                prompt=request.prompt if is_lost else resume_message(runs),
                provider_session_id=work.resume.provider_session_id,
                resumed_from=work.resume.run_id,
            )
        run = running.run = await session.admit(request)
        if running.cancelled:
            running.end_run()
        result = await self._follow_run(running, run)
        resumable = False
        if result.status is not RunStatus.COMPLETED or denials_of(result):
            resumable = await self._is_resumable(result)
        return AttemptResult(
            job=work.job.id, attempt=work.attempt, result=result, resumable=resumable
        )

    async def _open_session(self, work: AttemptSpec) -> SessionHandle:
        job = work.job
        if work.resume is not None:
            return await self._manager.session(work.session_id, reopen=True)
        return await self._manager.open_session(
            job.provider or "",
            cwd=job.cwd or ".",
            permission_mode=job.permission_mode or "default",
            model=job.model,
            metadata=_metadata(work),
            session_id=work.session_id,
        )

    async def _follow_run(self, running: _RunningAttempt, run: RunHandle) -> RunResult:
        directory = AttemptDirectory(running.work.item, self._copying)
        cursor = aiter(run)
        async with directory:
            try:
                while events := await cursor.batch():
                    running.doing.update(events, trio.current_time())
                    await directory.record_events(events)
            except StoreError as error:  # the run continues; only its activity is unknown
                log.warning(
                    "The activity of a run is no longer displayed. run=%s error=%s", run.id, error
                )
            result = await run.result()
        await directory.save_images(self._manager, result)
        return result

    async def _is_resumable(self, result: RunResult) -> bool:
        try:
            runs = await self._manager.settled(result.session_id)
        except LeaseHeld:
            return False
        except StoreError:  # the local result counts
            return is_session_resumable(self._manager, result)
        return any(run.id == result.id and is_session_resumable(self._manager, run) for run in runs)


def _metadata(work: AttemptSpec) -> dict[str, Json]:
    """Return the batch's entry in the record of an attempt's session."""
    out: dict[str, Json] = {} if work.out is None else {"out": work.out}
    return {"batch": work.batch, "job": work.job.id, **out}


def is_session_resumable(manager: Manager, run: Run | RunResult) -> bool:
    """Return whether a provider's session can be resumed after this run."""
    if run.provider_session_id is None:
        return False
    failed = run.failure is not None and run.status is not RunStatus.RATE_LIMITED
    if failed and not (run.failure and run.failure.resumable):
        return False
    return manager.supports(run.provider, "resume")


def _failed_attempt(work: AttemptSpec, failure: Failure) -> AttemptResult:
    """Return the result of an attempt without a run."""
    result = RunResult(
        id="",
        session_id=work.session_id,
        provider=work.job.provider or "",
        status=RunStatus.FAILED,
        failure=failure,
        metadata=work.job.metadata or {},
    )
    return AttemptResult(job=work.job.id, attempt=work.attempt, result=result)
