"""Scheduler of a batch: which attempts run, which jobs wait, and which one starts next.

It is synchronous and does no I/O except queries of the ledger; its caller passes events and the
current time.
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from sessionmgr.batch.ledger import Ledger
    from sessionmgr.batch.settings import BatchSettings


SEVERAL: Final = 2


class ActiveAttempt(NamedTuple):
    """A running attempt."""

    job: str
    attempt: int
    provider: str
    since: float
    directory: str = ""


class NextJob(NamedTuple):
    """The job to start next."""

    job: str
    provider: str
    retried: bool


class Scheduler:
    """Tracks running attempts, retries, pauses and stopped providers."""

    def __init__(self, ledger: Ledger, settings: BatchSettings) -> None:
        self._ledger: Final = ledger
        self._settings: Final = settings
        self._providers: Final[set[str]] = set()
        """Providers with jobs that wait in the ledger."""
        self.active: Final[dict[str, ActiveAttempt]] = {}
        self.directories: Final = set[str]()
        """The working directories of attempts so far: two of them, if there are several."""
        self._at_once: Final[Counter[str]] = Counter()
        self.tries: Final[dict[str, int]] = {}
        """Number of attempts in this call, for each job that runs or waits for its next attempt."""
        self._due: Final[list[tuple[float, int, str, str]]] = []
        self._order: Final = count()
        self._ready: Final[dict[str, deque[str]]] = {}
        self.closed: str | None = None
        """Reason why no more jobs start; None while they do."""
        self.stopped: Final[dict[str, str]] = {}
        """Providers with which no more jobs start, and why."""
        self._paused: Final[dict[str, float]] = {}
        self._reasons: Final[dict[str, str]] = {}
        """The reasons for the pauses."""
        self._hits: Final[Counter[str]] = Counter()

    def load_providers(self) -> None:
        """Load the providers with waiting jobs from the ledger."""
        self._providers.update(self._ledger.providers())

    # --- events ----------------------------------------------------------------------------------

    def record_start(self, chosen: NextJob, attempt: int, now: float, directory: str = "") -> None:
        """Record the start of an attempt."""
        self.active[chosen.job] = ActiveAttempt(
            chosen.job, attempt, chosen.provider, now, directory
        )
        if len(self.directories) < SEVERAL:
            self.directories.add(directory)
        self._at_once[chosen.provider] += 1
        self.tries[chosen.job] = self.tries.get(chosen.job, 0) + 1

    def record_end(self, job: str) -> ActiveAttempt:
        """Record the end of an attempt."""
        left = self.active.pop(job)
        self._at_once[left.provider] -= 1
        return left

    def undo_start(self, left: ActiveAttempt) -> bool:
        """Undo the start of an attempt that never began; return whether its job had earlier ones.

        If not, the job waits in the ledger as before.
        """
        self.tries[left.job] -= 1
        if self.tries[left.job]:
            return True
        self.forget(left.job)
        self._providers.add(left.provider)
        return False

    def schedule_retry(self, job: str, provider: str, due: float) -> None:
        """Schedule another attempt at a job, not before `due`."""
        heapq.heappush(self._due, (due, next(self._order), job, provider))

    def forget(self, job: str) -> None:
        """Forget a job that has ended."""
        self.tries.pop(job, None)

    def record_limit_hit(self, left: ActiveAttempt, now: float) -> int:
        """Record that a provider's limit was hit; return the number of consecutive hits.

        The result is 0 if the attempt started before the current pause, which counts this hit.
        """
        if self._paused.get(left.provider, 0.0) > left.since:
            return 0
        self._hits[left.provider] += 1
        return self._hits[left.provider]

    def pause(self, provider: str, until: float, why: str) -> None:
        """Pause a provider: none of its jobs start before `until`."""
        self._paused[provider] = until
        self._reasons[provider] = why

    def pauses(self, now: float) -> dict[str, float]:
        """Return the remaining seconds of each pause."""
        paused = list(self._paused.items())  # a copy: the executor's thread may add to it meanwhile
        return {each: until - now for each, until in paused if until > now}

    def hits(self, provider: str) -> int:
        """Return the number of consecutive hits of a provider's limit."""
        return self._hits[provider]

    def merge_hits(self, provider: str, hits: int) -> None:
        """Merge the number of hits that another batch has recorded."""
        self._hits[provider] = max(self._hits[provider], hits)

    def pause_reason(self, provider: str) -> str:
        """Return the message of a paused provider."""
        return self._reasons.get(provider, "")

    def paused_until(self, provider: str) -> float:
        """Return the end of a provider's pause."""
        return self._paused.get(provider, 0.0)

    def reset_hits(self, left: ActiveAttempt) -> None:
        """Reset the hits after a success, if the attempt started after the last pause."""
        if self._hits[left.provider] and left.since >= self._paused.get(left.provider, 0.0):
            del self._hits[left.provider]

    def stop_provider(self, provider: str, why: str) -> None:
        """Start no more jobs of a provider."""
        self.stopped.setdefault(provider, why)

    def drop_retries(self) -> list[str]:
        """Drop the pending retries that will not run, and return their jobs."""
        dropped = [
            (job, provider) for _, _, job, provider in self._due if self._is_stopped(provider)
        ]
        self._due[:] = [each for each in self._due if not self._is_stopped(each[3])]
        heapq.heapify(self._due)
        for provider in list(self._ready):
            if self._is_stopped(provider):
                dropped += [(job, provider) for job in self._ready.pop(provider)]
        return [job for job, _ in dropped]

    # --- next job --------------------------------------------------------------------------------

    def next(self, now: float) -> NextJob | None:
        """Return the job to start now; None if no job may start."""
        if self.closed is not None or len(self.active) >= self._settings.at_once:
            return None
        while self._due and self._due[0][0] <= now:
            _, _, job, provider = heapq.heappop(self._due)
            self._ready.setdefault(provider, deque()).append(job)
        for provider, ready in self._ready.items():
            if ready and self._has_capacity(provider, now):
                return NextJob(ready.popleft(), provider, retried=True)
        return self._next_unstarted(now)

    def _next_unstarted(self, now: float) -> NextJob | None:
        found: tuple[int, str, str] | None = None
        for provider in list(self._providers):
            if not self._has_capacity(provider, now):
                continue
            waiting = self._ledger.next(provider)
            if waiting is None:
                self._providers.discard(provider)
            elif found is None or waiting[0] < found[0]:
                found = (*waiting, provider)
        return None if found is None else NextJob(found[1], found[2], retried=False)

    def _is_stopped(self, provider: str) -> bool:
        return self.closed is not None or provider in self.stopped

    def _has_capacity(self, provider: str, now: float) -> bool:
        return (
            not self._is_stopped(provider)
            and self._at_once[provider] < self._settings.provider_limit(provider)
            and self._paused.get(provider, 0.0) <= now
        )

    def is_over(self) -> bool:
        """Return whether no attempt runs and none will start."""
        if self.active or self._due or any(self._ready.values()):
            return False
        if self.closed is not None:
            return True
        done = {each for each in self._providers if self._ledger.next(each) is None}
        self._providers.difference_update(done)
        return self._providers <= self.stopped.keys()

    def wakes_at(self, now: float) -> float:
        """Return the next time at which a waiting job may become startable."""
        times = [*self._paused.values(), *(due for due, *_ in self._due[:1])]
        return min((each for each in times if each > now), default=float("inf"))
