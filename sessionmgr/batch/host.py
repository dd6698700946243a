"""Protocol of hosts: where a batch runs its attempts, and what a host reports.

A host runs in this process or in another one. The batch submits attempts to it, and the host
answers with numbered reports, which it keeps until the batch has settled them. Attempt numbers act
as fencing tokens: the batch ignores a report about any attempt but a job's latest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

import msgspec

from sessionmgr.batch.job import Job
from sessionmgr.model import RunResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    import trio

    from sessionmgr.adapter import Health

LEASE: Final = 60.0
"""Seconds for which a host continues without a message from the batch."""
RENEW_EVERY: Final = 15.0


class ResumePoint(msgspec.Struct, frozen=True):
    """The run that an attempt continues, and its provider session."""

    run_id: str
    provider_session_id: str


class AttemptSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt at one job. Its session id is chosen before anything is started or stored."""

    batch: str
    job: Job
    attempt: int
    session_id: str
    resume: ResumePoint | None = None
    out: str | None = None
    """The batch's directory, recorded in its sessions for follow-ups."""
    item: str | None = None
    """The attempt's directory, for files beside its result; created on first use."""


class AttemptResult(msgspec.Struct, frozen=True, kw_only=True):
    """The end of an attempt; `resumable` is whether its provider session can be resumed."""

    job: str
    attempt: int
    result: RunResult
    resumable: bool = False
    side_effects: bool = False
    """Whether manual follow-up runs in its session have made tool calls."""


class AttemptActivity(msgspec.Struct, frozen=True, kw_only=True):
    """Current activity of an attempt, its duration in seconds, and the usage so far."""

    doing: str
    doing_for: float
    tokens: int = 0
    usd: float | None = None


Report: TypeAlias = tuple[int, AttemptResult]
"""A report: its number, higher than any before, and the end of an attempt."""


class Host(Protocol):
    """Runs attempts on behalf of a batch."""

    async def serve(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Serve until cancelled; leave nothing running.

        Args:
            task_status: The status by which the caller learns of the start.
        """
        ...

    def readiness(self, job: Job) -> Health:
        """Report whether a job's provider is usable; called before the first attempt.

        Args:
            job: The job.
        """
        ...

    async def submit(self, work: AttemptSpec) -> None:
        """Start an attempt. A refusal is reported like any other end.

        Cancellation has no effect on the start: the ledger and the host must agree on what started.

        Args:
            work: The attempt and its job.

        Raises:
            HostLost: The attempt may or may not have started.
        """
        ...

    async def cancel(self, job: str, attempt: int, detail: str | None) -> None:
        """Cancel an attempt; a report follows when it has ended.

        Args:
            job: The id of the job.
            attempt: The number of the attempt.
            detail: The reason, for the record.

        Raises:
            HostLost: The attempts there have ended, or will end without the host.
        """
        ...

    async def follow(self, after: int) -> Sequence[Report]:
        """Wait for reports numbered above `after` and return them; those up to it are settled.

        Args:
            after: The number of the last report that is settled.

        Raises:
            HostLost: No reports will follow.
        """
        ...

    async def renew(self, seconds: float) -> None:
        """Renew the lease: the host continues for at least this time without another message.

        Args:
            seconds: Seconds from now.

        Raises:
            HostLost: The host has ended.
        """
        ...

    def activity(self, job: str, attempt: int) -> AttemptActivity | None:
        """Return the last known activity of an attempt, without waiting; None if there is none.

        Args:
            job: The id of the job.
            attempt: The number of the attempt.
        """
        ...

    async def restore(self) -> None:
        """Start the host again after a loss; it reports nothing about attempts from before.

        Raises:
            HostLost: The host does not start.
        """
        ...
