"""The figures of a batch, kept as things happen."""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING, Final

from sessionmgr.batch import ledger as states
from sessionmgr.batch.denials import denials_of
from sessionmgr.batch.progress import Progress, RunningJob
from sessionmgr.batch.results import decode_job_result
from sessionmgr.batch.spending import may_have_cost
from sessionmgr.model import Cost, Provenance, total_cost

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sessionmgr.batch.board import Board, OnNow
    from sessionmgr.batch.host import Host
    from sessionmgr.batch.ledger import Ledger
    from sessionmgr.model import RunResult

WINDOW: Final = 30.0
"""Seconds over which the rate is taken."""
MOST: Final = 2000
"""Ends in that time, at most: enough to know."""


class Tally:
    """Counts what happens to the jobs."""

    def __init__(self, now: float) -> None:
        self._began: Final = now
        self._stopped_at: float | None = None
        self.counts: Counter[str] = Counter()
        """How many jobs are in which state."""
        self.failures = 0
        """How many jobs have ended now otherwise than well, and not because they were stopped."""
        self.denied = 0
        """How many jobs were denied something."""
        self.attempts = 0
        """How many attempts were begun by this run of the batch."""
        self.tokens = 0
        self.cost: Cost | None = None
        """What the attempts have cost that have ended; None while there are none."""
        self._last_ends: Final[deque[float]] = deque(maxlen=MOST)

    def open(self, ledger: Ledger) -> None:
        """Begin with what stands in the ledger."""
        self.counts = Counter(ledger.counts())
        spent = ledger.spent()
        self.tokens = spent.usage.input + spent.usage.cache_write + spent.usage.output
        self.cost = spent.cost
        self.denied = sum(bool(denials_of(decode_job_result(each))) for each in ledger.denied())

    def close(self, now: float) -> None:
        """Stop the watch."""
        self._stopped_at = now

    def elapsed(self, now: float) -> float:
        """Return for how long it has gone on."""
        return (now if self._stopped_at is None else self._stopped_at) - self._began

    def begin(self, before: str) -> None:
        """Count an attempt that begins."""
        self.attempts += 1
        self.move(before, states.RUNNING)

    def move(self, before: str, after: str) -> None:
        """Count a job that is no longer what it was."""
        self.counts[before] -= 1
        self.counts[after] += 1

    def end(self, before: str, after: str, now: float, *, denied: bool) -> None:
        """Count a job that is over; `denied` says that something was denied in it."""
        self.move(before, after)
        self.denied += denied
        self._last_ends.append(now)
        self.failures += after not in (states.COMPLETED, states.CANCELLED)

    def spend(self, result: RunResult) -> None:
        """Count what an attempt has used."""
        usage = result.usage
        self.tokens += usage.input + usage.cache_write + usage.output
        if may_have_cost(result):
            self.cost = result.cost if self.cost is None else self.cost + result.cost

    def progress(self, board: Board, host: Host, now: float) -> Progress:
        """Say how the batch stands."""
        counts = self.counts
        jobs, tokens, costs = _running(board.on.values(), host, now)
        cost = total_cost([*([] if self.cost is None else [self.cost]), *costs])
        paused = board.pauses(now)
        waiting, running, retrying = (counts[each] for each in _OPEN)
        rate = self._rate(now)
        left = waiting + running + retrying
        return Progress(
            total=sum(counts.values()),
            done=counts[states.COMPLETED],
            failed=sum(counts.values()) - left - counts["completed"] - counts["cancelled"],
            cancelled=counts[states.CANCELLED],
            running=running,
            waiting=waiting,
            retrying=retrying,
            denied=self.denied,
            tokens=self.tokens + tokens,
            usd=cost.usd,
            provenance=cost.provenance,
            elapsed=self.elapsed(now),
            rate=rate,
            eta=left / rate if rate and left and not paused else None,
            paused=paused,
            jobs=jobs,
        )

    def _rate(self, now: float) -> float | None:
        ends = self._last_ends
        while ends and now - ends[0] > WINDOW:
            ends.popleft()
        span = min(WINDOW, self.elapsed(now))
        if len(ends) == MOST:
            span = now - ends[0]
        return len(ends) / span if ends and span > 0 else None


_OPEN: Final = (states.WAITING, states.RUNNING, states.RETRYING)


def _running(
    on: Iterable[OnNow], host: Host, now: float
) -> tuple[tuple[RunningJob, ...], int, list[Cost]]:
    """Return what is on, and what it has used beside what has ended."""
    jobs: list[RunningJob] = []
    tokens, costs = 0, list[Cost]()
    for each in on:
        activity = host.activity(each.job, each.attempt)
        age = now - each.since
        jobs.append(
            RunningJob(
                job=each.job,
                provider=each.provider,
                attempt=each.attempt,
                age=age,
                doing="starting" if activity is None else activity.doing,
                doing_for=age if activity is None else activity.doing_for,
            )
        )
        if activity is not None:
            tokens += activity.tokens
            if activity.usd is not None:
                costs.append(Cost(usd=activity.usd, provenance=Provenance.REPORTED))
    return tuple(jobs), tokens, costs
