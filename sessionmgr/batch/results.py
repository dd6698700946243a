"""Results of jobs, one line each in `results.jsonl`, and the summary of a batch."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.batch.denials import JobDenial, denials_of
from sessionmgr.batch.errors import ResultsUnwritable
from sessionmgr.model import Cost, RunResult, Usage, encode_json
from sessionmgr.process import unlinked_opener

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence
    from pathlib import Path


FEW: Final = 1000
"""Below this number of lines, each replacement rewrites the file."""
MANY: Final = 16
"""A longer file is rewritten once this fraction of its lines has been replaced."""


class JobResult(RunResult, frozen=True, kw_only=True):
    """Result of a job: the result of its last attempt's run.

    `usage` and `cost` cover all attempts. A job that was refused at its start has no run, and its
    result's `id` is empty.
    """

    job: str
    """The job's id."""
    attempt: int
    """The number of attempts."""
    side_effects: bool = False
    """Whether the job has recorded tool calls, which starting it over may repeat."""


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """Summary of a batch."""

    batch: str
    """Id of the batch."""
    jobs: int
    """Number of jobs."""
    statuses: dict[str, int]
    """Number of ended jobs by status, and of the others as `not_run`."""
    failures: dict[str, int]
    """Number of jobs by kind of failure."""
    attempts: int
    """Attempts in all runs of the batch; the other figures cover all runs, too, except `duration`
    and `attempts_now`.
    """
    tokens: Usage
    """Token usage."""
    cost: Cost
    """Cost in US dollars."""
    started_at: str
    """Start of the batch's last run (RFC 3339, UTC)."""
    ended_at: str
    """End of the batch's last run (RFC 3339, UTC)."""
    duration: float
    """Seconds of the batch's last run."""
    attempts_now: int = 0
    """Attempts that started in the batch's last run."""
    left: int = 0
    """Number of jobs that the same call would run or continue if it were made again."""
    stopped: str | None = None
    """Reason why the batch stopped before all jobs ended."""
    providers_stopped: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    """Providers with which no more jobs were started, and the kind of failure that caused it."""
    warnings: tuple[str, ...] = ()
    """Warnings of the batch's last run."""
    denied_jobs: int = 0
    """Number of jobs with denials other than those by their permission mode."""
    denials: tuple[JobDenial, ...] = ()
    """The denials, in the order in which the jobs ended: the first 100."""
    undecided: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    """Jobs that the same call does not run, and the `retry_from` that starts each again."""

    @property
    def all_completed(self) -> bool:
        """Whether every job has completed."""
        return self.statuses.get("completed", 0) == self.jobs


def job_result(
    result: RunResult, job: str, attempt: int, *, side_effects: bool = False
) -> JobResult:
    """Add the job's fields to a result."""
    said = {name: getattr(result, name) for name in RunResult.__struct_fields__}
    return JobResult(**said, job=job, attempt=attempt, side_effects=side_effects)


def decode_job_result(line: bytes) -> JobResult:
    """Decode a line of `results.jsonl` that this version has written."""
    return _decoder.decode(line)


_decoder: Final = msgspec.json.Decoder(JobResult)


def job_denials(result: JobResult) -> list[JobDenial]:
    """Return a job's denials with the job's name.

    Args:
        result: The result of the job.
    """
    return [
        JobDenial(
            job=result.job,
            tool_name=each.tool_name,
            summary=each.summary,
            reason=each.reason,
            by=each.by,
        )
        for each in denials_of(result)
    ]


class ResultsFile:
    """`results.jsonl`: one line per job.

    A replaced line means an atomic rewrite of the file. If the file is large, several replacements
    are collected first: until the next rewrite, at the latest at the end of the batch, the last
    line of a job counts.
    """

    def __init__(self, path: Path, valid_lines: Callable[[], Iterable[bytes]]) -> None:
        """Rewrite the file; `valid_lines` returns the lines to keep.

        Raises:
            ResultsUnwritable: The file cannot be written.
        """
        self._path: Final = path
        self._valid_lines: Final = valid_lines
        self._file = -1
        self._lines = self._replaced = 0
        self._rewrite()

    def _rewrite(self) -> None:
        partial = self._path.with_name(f"{self._path.name}.part")
        lines = 0
        with _replacing_file(self._path):
            with open(partial, "wb", opener=unlinked_opener) as file:
                for line in self._valid_lines():
                    file.write(line + b"\n")
                    lines += 1
            partial.replace(self._path)
            if self._file >= 0:
                os.close(self._file)
            self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        self._lines, self._replaced = lines, 0

    def add(self, lines: Sequence[bytes], replaced: int = 0) -> None:
        """Append recorded lines; `replaced` of them replace earlier lines.

        Raises:
            ResultsUnwritable: The file cannot be written.
        """
        self._replaced += replaced
        if self._replaced and (self._lines <= FEW or self._replaced * MANY >= self._lines):
            self._rewrite()
            return
        data = b"".join(line + b"\n" for line in lines)
        with _replacing_file(self._path):
            while data:
                data = data[os.write(self._file, data) :]
        self._lines += len(lines)

    def complete(self) -> None:
        """Rewrite the file if some of its lines have been replaced.

        Raises:
            ResultsUnwritable: The file cannot be written.
        """
        if self._replaced:
            self._rewrite()

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def write_summary(path: Path, summary: Summary) -> None:
    """Write the summary atomically.

    Raises:
        ResultsUnwritable: The file cannot be written.
    """
    partial = path.with_name(f"{path.name}.part")
    with _replacing_file(path):
        with open(partial, "wb", opener=unlinked_opener) as file:
            file.write(msgspec.json.format(encode_json(summary), indent=2) + b"\n")
        partial.replace(path)


@contextmanager
def _replacing_file(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise ResultsUnwritable(path, error.strerror or error) from error
