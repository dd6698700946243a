"""Figures of a batch, updated with each event."""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING, Final

from sessionmgr.batch import ledger as states
from sessionmgr.batch.denials import DENIALS_LIMIT, JobDenial, denials_of
from sessionmgr.batch.progress import BatchProgress, PauseStatus, RunningJob
from sessionmgr.batch.results import decode_job_result, job_denials
from sessionmgr.batch.scheduler import SEVERAL
from sessionmgr.batch.usage_totals import may_have_cost
from sessionmgr.model import Cost, Provenance, Usage, format_timestamp, total_cost

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sessionmgr.batch.host import Host
    from sessionmgr.batch.ledger import FormerResult, Ledger
    from sessionmgr.batch.results import JobResult
    from sessionmgr.batch.scheduler import ActiveAttempt, Scheduler
    from sessionmgr.model import RunResult

WINDOW: Final = 30.0
"""Window in seconds over which the rate is computed."""
MOST: Final = 2000
"""Maximum number of job ends remembered for the rate."""


class BatchCounters:
    """Counts jobs, attempts, usage and denials of a batch."""

    def __init__(self, now: float) -> None:
        self._began: Final = now
        self._stopped_at: float | None = None
        self.counts: Counter[str] = Counter()
        """Number of jobs by state."""
        self.failures = 0
        """Number of jobs that failed in this call; stopped jobs do not count."""
        self.former: Counter[str] = Counter()
        """Number of open jobs by former outcome."""
        self.kinds: Counter[str] = Counter()
        """Number of ended jobs by kind of failure."""
        self.denied = 0
        """Number of jobs with denials."""
        self.denials: Final[list[JobDenial]] = []
        """The denials, up to a limit."""
        self.left = 0
        """Number of jobs that the same call would run or continue if it were made again."""
        self.undecided: Final[dict[str, str]] = {}
        """Jobs that wait for a decision, up to a limit, and the `retry_from` that starts each."""
        self.attempts = 0
        """Number of attempts in this call."""
        self.all_attempts = 0
        """Number of attempts in all calls."""
        self.usage = Usage()
        self.cost: Cost | None = None
        """The cost of the ended attempts; None if there are none."""
        self._last_ends: Final[deque[float]] = deque(maxlen=MOST)

    def load(self, ledger: Ledger) -> None:
        """Load the figures of former calls from the ledger."""
        self.counts = Counter(ledger.counts())
        self.former, self.kinds = Counter(ledger.former_counts()), Counter(ledger.failures())
        spent = ledger.total_usage()
        self.all_attempts, self.usage, self.cost = spent.attempts, spent.usage, spent.cost
        for line in ledger.denied_results():
            self._add_denials(decode_job_result(line))

    def _add_denials(self, result: JobResult) -> None:
        self.denied += bool(denials_of(result))
        if len(self.denials) < DENIALS_LIMIT:
            self.denials.extend(job_denials(result)[: DENIALS_LIMIT - len(self.denials)])

    @property
    def tokens(self) -> int:
        """Tokens of the ended attempts."""
        return self.usage.input + self.usage.cache_write + self.usage.output

    @property
    def statuses(self) -> dict[str, int]:
        """The number of ended jobs by status.

        A job that will run again counts with its former outcome until it ends the next time.
        """
        # Copies: the executor's thread may change the originals meanwhile.
        counts, former = dict(self.counts), dict(self.former)
        ended = {state: count for state, count in counts.items() if state not in states.UNENDED}
        return dict(Counter(ended) + Counter(former))

    @property
    def failures_by_kind(self) -> dict[str, int]:
        """The number of ended jobs by kind of failure, most frequent first."""
        found = [(kind, count) for kind, count in dict(self.kinds).items() if count > 0]
        return dict(sorted(found, key=lambda each: (-each[1], each[0])))

    def add_undecided(self, job: str, retry_from: str) -> None:
        """Record that a job does not start again without this `retry_from`."""
        if len(self.undecided) < DENIALS_LIMIT:
            self.undecided[job] = retry_from

    def stop_clock(self, now: float) -> None:
        """Stop the clock of this call."""
        self._stopped_at = now

    def elapsed(self, now: float) -> float:
        """Return the seconds since the start of this call."""
        return (now if self._stopped_at is None else self._stopped_at) - self._began

    def move(self, before: str, after: str) -> None:
        """Move a job from one state to another."""
        self.counts[before] -= 1
        self.counts[after] += 1

    def start_attempt(self, before: str) -> None:
        """Count the start of an attempt."""
        self.move(before, states.RUNNING)
        self.attempts += 1
        self.all_attempts += 1

    def undo_starts(self, attempts: int) -> None:
        """Undo the count of attempts whose start could not be recorded."""
        self.attempts -= attempts
        self.all_attempts -= attempts
        self.counts[states.RUNNING] -= attempts
        self.counts[states.WAITING] += attempts

    def end_job(
        self, before: str, result: JobResult, former_result: FormerResult | None, now: float
    ) -> None:
        """Count the end of a job; `former_result` is the result that the new one replaces."""
        self.move(before, result.status.value)
        if former_result is not None:
            self.former[former_result.state] -= 1
            if former_result.failure is not None:
                self.kinds[former_result.failure] -= 1
        self._add_denials(result)
        if result.failure is not None:
            self.kinds[result.failure.kind.value] += 1
        self._last_ends.append(now)
        self.failures += result.status not in (states.COMPLETED, states.CANCELLED)

    def add_usage(self, result: RunResult) -> None:
        """Add the usage of an attempt."""
        self.usage += result.usage
        if may_have_cost(result):
            self.cost = result.cost if self.cost is None else self.cost + result.cost

    def progress(
        self, scheduler: Scheduler, host: Host, now: float, *, wall: float
    ) -> BatchProgress:
        """Return the batch's progress; `wall` is the current wall-clock time."""
        counts = self.counts
        on = list(scheduler.active.values())
        with_directory = len(scheduler.directories) >= SEVERAL
        jobs, tokens, costs = _running(on, host, now, with_directory=with_directory)
        cost = total_cost([*([] if self.cost is None else [self.cost]), *costs])
        paused = scheduler.pauses(now)
        waiting, running, retrying = (counts[each] for each in _OPEN)
        rate = self._rate(now)
        left = waiting + running + retrying
        return BatchProgress(
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
            pauses={
                provider: PauseStatus(
                    seconds=left,
                    until=format_timestamp(wall + left),
                    why=scheduler.pause_reason(provider),
                )
                for provider, left in paused.items()
            },
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
    on: Iterable[ActiveAttempt], host: Host, now: float, *, with_directory: bool
) -> tuple[tuple[RunningJob, ...], int, list[Cost]]:
    """Return the running jobs, and the usage of their attempts so far."""
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
                directory=each.directory if with_directory else "",
            )
        )
        if activity is not None:
            tokens += activity.tokens
            if activity.usd is not None:
                costs.append(Cost(usd=activity.usd, provenance=Provenance.REPORTED))
    return tuple(jobs), tokens, costs
