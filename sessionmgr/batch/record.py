"""What the directory of a batch says of one of its jobs, for commands other than `batch`."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import msgspec

from sessionmgr.batch.job import Job
from sessionmgr.batch.ledger import UNENDED, Ledger
from sessionmgr.batch.place import LEDGER, is_begun, require_idle
from sessionmgr.errors import BatchBusy


class JobRecord(msgspec.Struct, frozen=True):
    """A job as its batch has it."""

    job: Job
    state: str
    busy: str | None
    """Who runs the batch now, where the job is not over yet."""


def batch_id(out: str | Path) -> str | None:
    """Return the id of the batch in a directory; None if none was begun there.

    Raises:
        LedgerUnusable: Its ledger cannot be read.
    """
    if not is_begun(out):
        return None
    with closing(_ledger(out)) as ledger:
        return ledger.note("batch")


def read_job(out: str | Path, job: str) -> JobRecord | None:
    """Return what a batch has on record of a job; None if it has no such job.

    Raises:
        LedgerUnusable: The ledger cannot be read.
    """
    if not is_begun(out):
        return None
    with closing(_ledger(out)) as ledger:
        known = ledger.known(job)
        if known is None:
            return None
        found = ledger.job(job)[0]
    return JobRecord(found, known.state, _holder(out) if known.state in UNENDED else None)


def _ledger(out: str | Path) -> Ledger:
    return Ledger(Path(out) / LEDGER)


def _holder(out: str | Path) -> str | None:
    try:
        require_idle(out)
    except BatchBusy as error:
        return error.holder
    return None
