"""A batch's record of one of its jobs, for commands other than `batch`."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import msgspec

from sessionmgr.batch.batch_dir import LEDGER, contains_batch, require_unlocked
from sessionmgr.batch.errors import BatchBusy
from sessionmgr.batch.job import Job
from sessionmgr.batch.ledger import UNENDED, Ledger


class JobRecord(msgspec.Struct, frozen=True):
    """A job as recorded by its batch."""

    job: Job
    state: str
    busy: str | None
    """The process that runs the batch, if the job is not over yet."""


def batch_id(out: str | Path) -> str | None:
    """Return the id of the batch in a directory; None if it contains none.

    Args:
        out: The directory of the batch.

    Raises:
        LedgerUnusable: Its ledger is unreadable.
    """
    if not contains_batch(out):
        return None
    with closing(_ledger(out)) as ledger:
        return ledger.metadata("batch")


def read_job_record(out: str | Path, job: str) -> JobRecord | None:
    """Return a batch's record of a job; None if it has no such job.

    Args:
        out: The directory of the batch.
        job: The id of the job.

    Raises:
        LedgerUnusable: The ledger is unreadable.
    """
    if not contains_batch(out):
        return None
    with closing(_ledger(out)) as ledger:
        known = ledger.known_job(job)
        if known is None:
            return None
        found = ledger.job(job)[0]
    return JobRecord(
        found, known.state, _batch_directory_of(out) if known.state in UNENDED else None
    )


def _ledger(out: str | Path) -> Ledger:
    return Ledger(Path(out) / LEDGER)


def _batch_directory_of(out: str | Path) -> str | None:
    try:
        require_unlocked(out)
    except BatchBusy as error:
        return error.holder
    return None
