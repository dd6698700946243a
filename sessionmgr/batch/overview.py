"""Overview of a batch, read from its directory by any process, also while the batch runs."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import closing
from pathlib import Path
from typing import Final

import msgspec

from sessionmgr.batch import ledger as states
from sessionmgr.batch.batch_dir import LEDGER, contains_batch
from sessionmgr.batch.job import Job
from sessionmgr.batch.ledger import Ledger
from sessionmgr.batch.results import JobResult, decode_job_result
from sessionmgr.batch.store_identity import STORE_NOTE
from sessionmgr.batch.usage_totals import UsageTotals

PATIENCE: Final = 5.0
"""Seconds to wait for the batch's own lock on its ledger."""
_LOCK: Final = "lock"
_OUTCOMES: Final = ("results.jsonl", "summary.json")
_PROCESS: Final = "process "


class Attempt(msgspec.Struct, frozen=True):
    """A running attempt, and the session that has its run."""

    job: Job
    number: int
    session: str


class BatchOverview(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a batch. `states` has the number of jobs in each state of the ledger."""

    out: Path
    batch: str
    states: dict[str, int]
    denied: int
    spent: UsageTotals
    started_at: float
    """The start of the latest call, in seconds since 1970."""
    changed_at: float
    """The time of the last recorded outcome."""
    holder: str | None
    """The process that runs the batch (`process 4711`); None if no process does."""
    running: tuple[Attempt, ...]
    """The attempts that the ledger has as running; without a process they were interrupted."""
    store: Path | None
    """The store of its sessions."""

    @property
    def pid(self) -> int | None:
        """The number of that process."""
        number = (self.holder or "").removeprefix(_PROCESS)
        return int(number) if number.isdecimal() else None


class _LedgerView(Ledger):
    """A ledger with the queries of an overview."""

    def running(self) -> list[Attempt]:
        """Return the running attempts."""
        rows = self._execute(
            "select body, number, session from job join attempt on job = id and"
            " number = attempts where state = 'running' order by line"
        )
        return [Attempt(_job.decode(body), number, session) for body, number, session in rows]

    def failed(self, limit: int) -> list[bytes]:
        """Return the results of jobs that failed, newest first."""
        rows = self._execute(
            "select result from job where round = ? and ended is not null and"
            " state not in ('completed', 'cancelled') order by ended desc limit ?",
            (self.round, limit),
        )
        return [result for (result,) in rows]


def read_batch(out: str | Path) -> BatchOverview | None:
    """Read the overview of the batch in a directory; None if it contains no batch.

    Args:
        out: The directory.

    Raises:
        LedgerUnusable: Its ledger is unreadable.
    """
    if not contains_batch(out):
        return None
    path = Path(out).absolute()
    held = _holder(path)
    outcomes = [changed for name in _OUTCOMES if (changed := _changed(path / name))]
    started = _changed(path / _LOCK)
    with closing(_view(path)) as ledger:
        store = ledger.metadata(STORE_NOTE)
        return BatchOverview(
            out=path,
            batch=ledger.metadata("batch") or "",
            states=ledger.counts(),
            denied=sum(1 for _ in ledger.denied_results()),
            spent=ledger.total_usage(),
            started_at=started,
            changed_at=max(outcomes, default=started),
            holder=held,
            running=tuple(ledger.running()),
            store=Path(store) if store else None,
        )


def read_failures(out: str | Path, limit: int) -> list[JobResult]:
    """Return the last results of a batch's failed jobs, newest first.

    Args:
        out: The directory of the batch.
        limit: The maximum number of results.

    Raises:
        LedgerUnusable: Its ledger is unreadable.
    """
    with closing(_view(Path(out))) as ledger:
        return [decode_job_result(line) for line in ledger.failed(limit)]


def ended(states_of: dict[str, int]) -> tuple[int, int, int]:
    """Return how many jobs completed, failed and were cancelled.

    Args:
        states_of: The number of jobs in each state, as in `BatchOverview.states`.
    """
    done, cancelled = states_of.get(states.COMPLETED, 0), states_of.get(states.CANCELLED, 0)
    open_ = sum(states_of.get(each, 0) for each in states.UNENDED)
    return done, sum(states_of.values()) - done - cancelled - open_, cancelled


def _view(path: Path) -> _LedgerView:
    given_up = time.monotonic() + PATIENCE
    return _LedgerView(path / LEDGER, lambda: time.monotonic() < given_up)


def _changed(path: Path) -> float:
    """Return when a file was last written; 0 if there is none."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _holder(path: Path) -> str | None:
    """Return the process that has locked a batch's directory; nothing is written."""
    try:
        lock = os.open(path / _LOCK, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.read(lock, 100).decode("utf-8", "replace").strip() or "another process"
    finally:
        os.close(lock)
    return None


_job: Final = msgspec.json.Decoder(Job)
