"""Progress of a batch as plain values, for displays."""

from __future__ import annotations

import msgspec

from sessionmgr.model import Provenance


class RunningJob(msgspec.Struct, frozen=True, kw_only=True):
    """A running job; `age` and `doing_for` are in seconds."""

    job: str
    """The job's id."""
    provider: str
    """The provider."""
    attempt: int
    """Number of the attempt."""
    age: float
    """Seconds since the start of the attempt."""
    doing: str
    """`Bash: npm test`, `thinking`, `writing`, `waiting for approval`, `starting`, `stopping`."""
    doing_for: float
    """Seconds since the start of the current activity."""
    directory: str = ""
    """Its working directory; empty if the batch has run jobs in a single directory so far."""


class PauseStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A pause: no job starts with a provider, because its limit was hit."""

    seconds: float
    """The remaining seconds."""
    until: str
    """The end of the pause (RFC 3339)."""
    why: str
    """The provider's message."""


class WaitStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A wait of the batch as a whole."""

    what: str
    """`store`, `ledger`"""
    seconds: float
    """The seconds of waiting so far."""
    why: str | None = None
    """The known cause."""


class BatchProgress(msgspec.Struct, frozen=True, kw_only=True):
    """Progress of a batch. Each job is in exactly one of the counts from `done` to `retrying`."""

    total: int | None
    """None while the jobs are still being read."""
    done: int = 0
    """Completed jobs, former runs included."""
    failed: int = 0
    """Jobs that ended without success, for good: failed, timed out, out of budget, rate limited."""
    cancelled: int = 0
    """Cancelled jobs."""
    running: int = 0
    """Jobs that run now."""
    waiting: int = 0
    """Jobs that wait for their first attempt."""
    retrying: int = 0
    """Jobs that wait for their next attempt."""
    denied: int = 0
    """Ended jobs with denials, however they ended."""
    tokens: int = 0
    """Tokens of input and output so far."""
    usd: float | None = None
    """Known cost in US dollars; None if no provider has reported any."""
    provenance: Provenance = Provenance.UNKNOWN
    """Source of the cost."""
    elapsed: float = 0.0
    """Seconds since the start of this call."""
    rate: float | None = None
    """Jobs that ended per second, over the last 30 seconds."""
    eta: float | None = None
    """Estimated seconds until all jobs have ended; None if unknown."""
    paused: dict[str, float] = {}
    """Paused providers, and the remaining seconds of each pause."""
    pauses: dict[str, PauseStatus] = {}
    """The same providers, with end and reason of the pause."""
    waits: tuple[WaitStatus, ...] = ()
    """The waits that keep the batch from recording what has happened."""
    jobs: tuple[RunningJob, ...] = ()
    """Running jobs, oldest first."""
