"""Retry policy: whether to retry a job after a failure, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.batch.restart import lacked_resources, restarts_without_session
from sessionmgr.model import FailureKind, RunStatus, parse_timestamp

if TYPE_CHECKING:
    from sessionmgr.batch.host import AttemptResult
    from sessionmgr.batch.restart import Basis
    from sessionmgr.batch.scheduler import ActiveAttempt, Scheduler
    from sessionmgr.manager import Manager
    from sessionmgr.model import RunResult

FIRST: Final = 2.0
FACTOR: Final = 2.0
LONGEST: Final = 300.0
MOST_DOUBLED: Final = 16
"""Number of doublings after which the delay is at its maximum anyway."""
PAUSE: Final = 900.0
LONGEST_PAUSE: Final = 3600.0

STOPS_THE_PROVIDER: Final = frozenset(
    {
        FailureKind.AUTH_FAILED,
        FailureKind.BILLING,
        FailureKind.CLI_NOT_FOUND,
    }
)
"""Failures that every job of the provider would repeat: no more of its jobs start."""


class RetryRule(msgspec.Struct, frozen=True, kw_only=True):
    """Maximum number of retries, and the kinds of failure to retry."""

    retries: int = 2
    kinds: frozenset[FailureKind] | None = None
    """None: the failures that are marked as retryable."""

    def allows_retry(self, ended: AttemptResult, tries: int) -> bool:
        """Return whether a failure of its kind is retried after that many tries."""
        failure = ended.result.failure
        if failure is None or tries > self.retries or failure.kind in STOPS_THE_PROVIDER:
            return False
        if self.kinds is not None:
            return failure.kind in self.kinds
        return failure.retryable


class RetrySchedule:
    """Decides when jobs are retried."""

    def __init__(self, rule: RetryRule, scheduler: Scheduler, manager: Manager) -> None:
        self._rule: Final = rule
        self._scheduler: Final = scheduler
        self._manager: Final = manager

    def retry_time(
        self, ended: AttemptResult, basis: Basis, left: ActiveAttempt, now: float
    ) -> float | None:
        """Return when to retry a job, or None; `basis` is the basis that its attempt has left."""
        scheduler, manager = self._scheduler, self._manager
        if waits_for_limit(ended):
            hits = scheduler.record_limit_hit(left, now)
            if hits:
                wait = pause_length(ended.result, hits, now=manager.now(), chance=manager.chance())
                scheduler.pause(left.provider, now + wait, limit_reason(ended.result))
            scheduler.tries[ended.job] -= 1
            return scheduler.paused_until(left.provider)
        tries = scheduler.tries[ended.job]
        if restarts_without_session(ended.result, basis):
            return now if tries <= self._rule.retries else None
        if (
            lacked_resources(ended.result) and scheduler.active
        ):  # not counted as a retry: the end of another run makes room
            scheduler.tries[ended.job], tries = tries - 1, ended.attempt
        elif not self._rule.allows_retry(ended, tries):
            return None
        return now + backoff_delay(ended.result, tries, now=manager.now(), chance=manager.chance())


def waits_for_limit(ended: AttemptResult) -> bool:
    """Return whether an attempt only waits for its provider's limit; this is not a retry."""
    return ended.result.status is RunStatus.RATE_LIMITED


def was_interrupted(ended: AttemptResult) -> bool:
    """Return whether an attempt was interrupted with its process."""
    failure = ended.result.failure
    return failure is not None and failure.kind is FailureKind.MANAGER_CRASHED


def backoff_delay(result: RunResult, tries: int, *, now: float, chance: float) -> float:
    """Return the delay before a retry: exponential, with random variation."""
    wait = min(FIRST * FACTOR ** min(tries - 1, MOST_DOUBLED), LONGEST) * (0.5 + chance)
    return max(wait, _retry_after_hint(result, now) or 0.0)


def pause_length(result: RunResult, hits: int, *, now: float, chance: float) -> float:
    """Return the length of a provider's pause after a number of consecutive limit hits."""
    hinted = _retry_after_hint(result, now)
    wait = min(PAUSE * FACTOR ** (hits - 1), LONGEST_PAUSE) if hinted is None else hinted
    return min(wait, LONGEST_PAUSE) * (1.0 + 0.1 * chance)


def limit_reason(result: RunResult) -> str:
    """Return a short form of a provider's message about its limit."""
    failure = result.failure
    if failure is None:
        return "rate limited"
    said = failure.message or failure.kind.value
    code = failure.provider_code
    return said if code is None or code in said else f"{code}: {said}"


def _retry_after_hint(result: RunResult, now: float) -> float | None:
    """Return the provider's own delay until a retry, in seconds, if it has given one."""
    if result.failure is None or result.failure.retry_at is None:
        return None
    try:
        return min(max(parse_timestamp(result.failure.retry_at) - now, 0.0), LONGEST_PAUSE)
    except ValueError:
        return None
