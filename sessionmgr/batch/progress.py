"""How far a batch is: what a display shows, as plain values."""

from __future__ import annotations

import msgspec

from sessionmgr.model import Provenance


class RunningJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job that is on; `age` and `doing_for` are seconds."""

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
    """Seconds of the present activity."""
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
    """How a batch stands. Every job is in exactly one of the counts from `done` to `retrying`."""

    total: int | None
    """None while the jobs are still being read."""
    done: int = 0
    """Completed, those of former runs included."""
    failed: int = 0
    """Ended otherwise, for good: failed, timed out, out of budget, rate limited."""
    cancelled: int = 0
    """Cancelled jobs."""
    running: int = 0
    """Jobs that run now."""
    waiting: int = 0
    """Jobs that wait for their first attempt."""
    retrying: int = 0
    """Waiting for their next attempt."""
    denied: int = 0
    """Ended jobs with denials, however they ended."""
    tokens: int = 0
    """Tokens of input and output so far."""
    usd: float | None = None
    """What is known of the cost; None: nobody has said anything."""
    provenance: Provenance = Provenance.UNKNOWN
    """Source of the cost."""
    elapsed: float = 0.0
    """Seconds since the start of this call."""
    rate: float | None = None
    """Jobs that ended each second, of late."""
    eta: float | None = None
    """Seconds until all is done, at that rate; None while that cannot be said."""
    paused: dict[str, float] = {}
    """Providers whose limit was hit, and for how many seconds they are left alone yet."""
    pauses: dict[str, PauseStatus] = {}
    """The same providers, with end and reason of the pause."""
    waits: tuple[WaitStatus, ...] = ()
    """The waits that keep the batch from recording what has happened."""
    jobs: tuple[RunningJob, ...] = ()
    """Those that are on, the oldest first."""
