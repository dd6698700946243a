"""Ledger of a batch: a small SQLite database with its jobs, their attempts and their results.

The ledger works ahead: each step is recorded before it is taken, so it survives `kill -9`. It also
keeps the memory use of a batch small, because ended jobs are here and not in memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from sessionmgr.batch import former_results
from sessionmgr.batch.job import Job
from sessionmgr.batch.ledger_schema import LedgerFile
from sessionmgr.batch.restart import Basis, PastAttempt, unpack_basis
from sessionmgr.batch.usage_totals import may_have_cost, sum_usage
from sessionmgr.model import RunResult, encode_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from sessionmgr.batch.usage_totals import UsageTotals

WAITING: Final = "waiting"
RUNNING: Final = "running"
RETRYING: Final = "retrying"
COMPLETED: Final = "completed"
CANCELLED: Final = "cancelled"
UNENDED: Final = (WAITING, RUNNING, RETRYING)


class KnownJob(msgspec.Struct, frozen=True):
    """A job as the ledger knows it: its line, its fingerprint, and its state."""

    line: int
    round: int
    fingerprint: str
    digests: dict[str, str]
    state: str
    attempts: int
    basis: Basis


class JobEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A job to enter, checked and complete."""

    job: Job
    line: int
    fingerprint: str
    digests: dict[str, str]
    directory: str
    """The directory in which it may write; empty if it writes nothing."""
    chosen: bool


class LastRun(msgspec.Struct, frozen=True):
    """The run that an attempt continues."""

    session: str
    run: str
    provider_session: str
    status: str


class FormerResult(NamedTuple):
    """A job's result from before it was scheduled to run again."""

    state: str
    failure: str | None


class Ledger(LedgerFile):
    """The ledger of one batch."""

    def __init__(self, path: Path | None, keep_waiting: Callable[[], bool] = lambda: False) -> None:
        """Open the ledger; without a path, a temporary one.

        Raises:
            LedgerUnusable: It is not readable or writable. All other methods raise this, too.
        """
        super().__init__(path, keep_waiting)
        self.round = int(self.metadata("round") or 0)

    def metadata(self, key: str, value: str | None = None) -> str | None:
        """Return a note about the batch itself; with a `value`, set it first."""
        if value is not None:
            self._execute("insert or replace into note values (?, ?)", (key, value))
        row = self._execute("select value from note where key = ?", (key,)).fetchone()
        return None if row is None else row[0]

    # --- import of jobs --------------------------------------------------------------------------

    def begin_round(self) -> None:
        """Start an import; jobs that are not entered again stay as they are, unselected."""
        self.round += 1
        self.metadata("round", str(self.round))
        self._execute(former_results.RESTORE)
        self._execute(former_results.FORGET_RESTORED)
        self._execute("update job set chosen = 0 where chosen")

    def known_job(self, job: str) -> KnownJob | None:
        """Return the known state of a job; None if it is new."""
        row = self._execute(
            "select line, round, fingerprint, digests, state, attempts, resume from job"
            " where id = ?",
            (job,),
        ).fetchone()
        if row is None:
            return None
        line, entered, fingerprint, digests, state, attempts, resume = row
        digests, basis = _digests.decode(digests), unpack_basis(resume)
        return KnownJob(line, entered, fingerprint, digests, state, attempts, basis)

    def enter(self, entered: JobEntry) -> None:
        """Enter a job that is new or has changed work: it waits, whatever its former state."""
        job = entered.job
        self._execute(former_results.RECORD_FORMER_ATTEMPTS, (job.id,))
        self._execute(former_results.SET_ASIDE, (job.id,))
        self._execute(
            "insert into job (id, line, round, chosen, provider, directory, fingerprint, digests,"
            " body, state) values (?, ?, ?, ?, ?, ?, ?, ?, ?, 'waiting') on conflict (id) do update"
            " set line = excluded.line, round = excluded.round, chosen = excluded.chosen,"
            " provider = excluded.provider, directory = excluded.directory,"
            " fingerprint = excluded.fingerprint, digests = excluded.digests,"
            " body = excluded.body, state = 'waiting', resume = 0, ended = null, result = null",
            (
                *(job.id, entered.line, self.round, entered.chosen, job.provider),
                *(entered.directory, entered.fingerprint, encode_json(dict(entered.digests))),
                encode_json(job),
            ),
        )

    def enter_again(self, entered: JobEntry, state: str) -> None:
        """Enter a job with unchanged work again, in its state or to run once more.

        Its limits and labels may have changed.
        """
        again = ""
        if state == WAITING:
            self._execute(former_results.SET_ASIDE, (entered.job.id,))
            again = ", ended = null, result = null"
        self._execute(
            "update job set line = ?, round = ?, chosen = ?, directory = ?, state = ?,"
            f" fingerprint = ?, digests = ?, body = ?{again} where id = ?",
            (
                *(entered.line, self.round, entered.chosen, entered.directory, state),
                *(entered.fingerprint, encode_json(dict(entered.digests))),
                *(encode_json(entered.job), entered.job.id),
            ),
        )

    def update_line(self, job: str, line: int) -> None:
        """Record the new line of a job that stays as it was, even if its work has changed."""
        self._execute("update job set line = ?, round = ? where id = ?", (line, self.round, job))

    def shared_directories(self) -> list[tuple[str, int]]:
        """Return the directories shared by several selected jobs that may write, with counts."""
        return self._execute(
            "select directory, count(*) as jobs from job where chosen and directory <> ''"
            " and state in ('waiting', 'running', 'retrying') group by directory having jobs > 1"
            " order by jobs desc, directory"
        ).fetchall()

    def providers(self) -> list[str]:
        """Return the providers of the waiting jobs."""
        rows = self._execute(
            "select distinct provider from job where state = 'waiting' and chosen"
        ).fetchall()
        return [provider for (provider,) in rows]

    def counts(self) -> dict[str, int]:
        """Return the number of this round's jobs in each state."""
        return dict(
            self._execute(
                "select state, count(*) from job where round = ? group by state", (self.round,)
            ).fetchall()
        )

    def former_counts(self) -> dict[str, int]:
        """Return the number of open jobs of this round by their former outcome."""
        return dict(self._execute(former_results.STATES, (self.round,)).fetchall())

    # --- attempts --------------------------------------------------------------------------------

    def next(self, provider: str) -> tuple[int, str] | None:
        """Return line and id of the first job that waits for this provider."""
        found: tuple[int, str] | None = self._execute(
            "select line, id from job where state = 'waiting' and chosen and provider = ?"
            " order by line limit 1",
            (provider,),
        ).fetchone()
        return found

    def job(self, job: str) -> tuple[Job, int, Basis]:
        """Return a job, its number of attempts, and the basis of the next one."""
        body, attempts, resume = self._execute(
            "select body, attempts, resume from job where id = ?", (job,)
        ).fetchone()
        return _job.decode(body), attempts, unpack_basis(resume)

    def attempt(self, job: str, number: int) -> str:
        """Return the session of an attempt."""
        row: tuple[str] = self._execute(
            "select session from attempt where job = ? and number = ?", (job, number)
        ).fetchone()
        return row[0]

    def last_run(self, job: str) -> LastRun | None:
        """Return the last run of a job, if its provider session is known."""
        row = self._execute(
            "select session, run, provider_session, status from attempt where job = ?"
            " and run is not null and provider_session is not null order by number desc limit 1",
            (job,),
        ).fetchone()
        return None if row is None else LastRun(*row)

    def past_attempts(self, job: str) -> list[PastAttempt]:
        """Return the outcomes of the last attempts that had a run, newest first."""
        rows = self._execute(
            "select session, failure from attempt where job = ? and run is not null"
            " order by number desc limit 3",
            (job,),
        )
        return [PastAttempt(*row) for row in rows]

    def runs(self, job: str) -> set[str]:
        """Return the runs of a job's attempts."""
        rows = self._execute("select run from attempt where job = ? and run is not null", (job,))
        return {run for (run,) in rows}

    def former_result(self, job: str) -> FormerResult | None:
        """Return a job's former result, if it has not been replaced."""
        row = self._execute(former_results.FORMER_STATE, (job,)).fetchone()
        return None if row is None else FormerResult(*row)

    def former_line(self, job: str) -> bytes | None:
        """Return the line of that result."""
        row = self._execute(former_results.FORMER_LINE, (job,)).fetchone()
        return None if row is None else row[0]

    def begin_attempt(self, job: str, number: int, session: str, basis: Basis) -> None:
        """Record that an attempt is about to start, and its basis."""
        self._execute(
            "insert into attempt (job, number, session) values (?, ?, ?)", (job, number, session)
        )
        self._execute(
            "update job set state = 'running', attempts = ?, resume = ? where id = ?",
            (number, basis.packed, job),
        )
        self._execute(former_results.BEGUN, (number, job))

    def undo_begin(self, job: str, number: int, basis: Basis) -> None:
        """Record that a job waits; if its attempt has no run, that attempt was never made."""
        self.requeue(job, basis)
        self._execute(former_results.UNBEGUN, (job, number))

    def interrupted_attempts(self) -> list[tuple[str, int, str]]:
        """Return job, attempt and state of all attempts that a former process left unfinished."""
        return self._execute(
            "select id, attempts, state from job where state in ('running', 'retrying')"
            " order by line"
        ).fetchall()

    def sessions(self, limit: int) -> list[str]:
        """Return the sessions of attempts, at most `limit`."""
        rows = self._execute("select distinct session from attempt limit ?", (limit,))
        return [session for (session,) in rows]

    def resumable_sessions(self) -> list[tuple[str, Basis]]:
        """Return the last sessions and the bases of the selected jobs that wait to be resumed."""
        rows = self._execute(
            "select session, resume from job join attempt on job = id where state = 'waiting' and"
            " chosen and resume and run is not null and provider_session is not null and number ="
            " (select max(number) from attempt where job = id and run is not null"
            " and provider_session is not null)"
        )
        return [(session, unpack_basis(resume)) for session, resume in rows]

    def end_attempt(self, job: str, number: int, result: RunResult) -> None:
        """Record an attempt's outcome; one that never started has no cost, known or unknown."""
        failure = result.failure.kind.value if result.failure else None
        provenance = result.cost.provenance.value if may_have_cost(result) else None
        self._execute(
            "update attempt set run = ?, status = ?, failure = ?, provider_session = ?, usage = ?,"
            " usd = ?, provenance = ? where job = ? and number = ?",
            (
                *(result.id or None, result.status.value, failure, result.provider_session_id),
                *(encode_json(result.usage), result.cost.usd, provenance),
                *(job, number),
            ),
        )

    def requeue(self, job: str, basis: Basis) -> None:
        """Record that a job waits as if it were new, except for its basis."""
        self._execute(
            "update job set state = 'waiting', resume = ? where id = ?", (basis.packed, job)
        )

    def retry(self, job: str, result: bytes, basis: Basis) -> None:
        """Record that a job will be retried, and the result that counts if it is not."""
        self._execute(
            "update job set state = 'retrying', resume = ?, result = ? where id = ?",
            (basis.packed, result, job),
        )

    def result(self, job: str) -> bytes:
        """Return a job's result so far."""
        row: tuple[bytes] = self._execute("select result from job where id = ?", (job,)).fetchone()
        return row[0]

    def end_job(self, job: str, state: str, result: bytes, number: int, basis: Basis) -> None:
        """Record the end of a job; `number` is its position among all ends."""
        self._execute(
            "update job set state = ?, result = ?, ended = ?, resume = ? where id = ?",
            (state, result, number, basis.packed, job),
        )
        self._execute(former_results.REPLACED, (job,))

    # --- results ---------------------------------------------------------------------------------

    def last_end(self) -> int:
        """Return the number of the last end."""
        (last,) = self._execute(former_results.LAST_END).fetchone()
        return last or 0

    def results(self, after: int = 0, limit: int = -1) -> Iterator[tuple[int, bytes]]:
        """Return numbers and results of this round's ends after a number, in order."""
        yield from self._execute(
            "select ended, result from job where ended > ? and round = ? order by ended limit ?",
            (after, self.round, limit),
        )

    def valid_results(self) -> Iterator[bytes]:
        """Return the valid results: one for each job that has ever had one."""
        for _, result in self._execute(former_results.ALL_RESULTS):
            yield result

    def failures(self) -> dict[str, int]:
        """Return the number of jobs by kind of failure."""
        return dict(self._execute(former_results.FAILURES, (self.round, self.round)).fetchall())

    def uncompleted(self) -> Iterator[tuple[str, str]]:
        """Return the id and state of this round's incomplete jobs."""
        yield from self._execute(
            "select id, state from job where round = ? and state <> 'completed'", (self.round,)
        )

    def denied_results(self) -> Iterator[bytes]:
        """Return this round's results with denials."""
        rows = self._execute(
            "select result from job where round = ? and ended is not null and"
            " json_array_length(cast(result as text), '$.permission_denials') > 0 order by ended",
            (self.round,),
        )
        for (result,) in rows:
            yield result

    def total_usage(self) -> UsageTotals:
        """Return the usage of all attempts of this round's jobs."""
        return sum_usage(
            self._execute(
                "select usage, usd, provenance from attempt join job on job.id = attempt.job"
                " where job.round = ?",
                (self.round,),
            )
        )

    def work_usage(self, job: str) -> UsageTotals:
        """Return the usage of the attempts at a job's present work."""
        return sum_usage(
            self._execute(
                "select usage, usd, provenance from attempt where job = ? and number >"
                " coalesce((select attempts from former where job = ?), 0)",
                (job, job),
            )
        )

    def job_usage(self, job: str) -> UsageTotals:
        """Return the usage of all attempts of one job."""
        return sum_usage(
            self._execute("select usage, usd, provenance from attempt where job = ?", (job,))
        )


_job: Final = msgspec.json.Decoder(Job)
_digests: Final = msgspec.json.Decoder(dict[str, str])
