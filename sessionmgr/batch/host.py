"""The seam behind which jobs run: what a batch asks of a host, and what it hears from it.

A host is in this process, or in another, or anywhere. It is told to make attempts at jobs, and
answers with numbered reports, which it keeps until they have been taken note of. Numbers of
attempts are fences: what is reported of one that is not the job's latest changes nothing.
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
"""Seconds for which a host goes on by itself when nothing is heard of the batch."""
RENEW_EVERY: Final = 15.0


class ResumePoint(msgspec.Struct, frozen=True):
    """The run that an attempt goes on with, by the provider's session."""

    run_id: str
    provider_session_id: str


class AttemptSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt at one job. Its session is named before anything is started or stored."""

    batch: str
    job: Job
    attempt: int
    session_id: str
    resume: ResumePoint | None = None
    out: str | None = None
    """The batch's directory, recorded in its sessions for follow-ups."""
    item: str | None = None
    """The directory for what it leaves beside its result; made when there is something."""


class AttemptResult(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt is over; `resumable` says whether its provider's session could go on."""

    job: str
    attempt: int
    result: RunResult
    resumable: bool = False
    side_effects: bool = False
    """Whether manual follow-up runs in its session have made tool calls."""


class AttemptActivity(msgspec.Struct, frozen=True, kw_only=True):
    """What an attempt is at, for how many seconds, and what it has used so far."""

    doing: str
    doing_for: float
    tokens: int = 0
    usd: float | None = None


Report: TypeAlias = tuple[int, AttemptResult]
"""A number, higher than any before it, and what there is to hear."""


class Host(Protocol):
    """Where attempts are made."""

    async def serve(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Be there for as long as this is not cancelled; leave nothing behind.

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
        """Take up an attempt. A refusal is reported like any other end.

        A cancel leaves it as it is: what is on record as begun has been told here.

        Args:
            work: The attempt and its job.

        Raises:
            HostLost: It may or may not have been taken up.
        """
        ...

    async def cancel(self, job: str, attempt: int, detail: str | None) -> None:
        """Have an attempt end; that it has is reported.

        Args:
            job: The id of the job.
            attempt: The number of the attempt.
            detail: The reason, for the record.

        Raises:
            HostLost: Whatever ran there has ended, or will by itself.
        """
        ...

    async def follow(self, after: int) -> Sequence[Report]:
        """Wait for reports numbered above `after` and return them; those up to it are settled.

        Args:
            after: The number of the last report that is settled.

        Raises:
            HostLost: There will be no more.
        """
        ...

    async def renew(self, seconds: float) -> None:
        """Have it go on for so long, at least, if nothing more is heard of the batch.

        Args:
            seconds: Seconds from now.

        Raises:
            HostLost: It is no more.
        """
        ...

    def activity(self, job: str, attempt: int) -> AttemptActivity | None:
        """Return what an attempt is at, as far as is known here and now.

        Args:
            job: The id of the job.
            attempt: The number of the attempt.
        """
        ...

    async def restore(self) -> None:
        """Be there again after a loss; of what ran before, nothing more will be reported.

        Raises:
            HostLost: It does not come up again.
        """
        ...
