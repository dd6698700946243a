"""What came of the jobs: one result each, in a file as they end, and a summary of all."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.batch.denials import JobDenial  # msgspec reads the annotation
from sessionmgr.errors import ResultsUnwritable
from sessionmgr.model import Cost, RunResult, Usage, encode_json
from sessionmgr.process.private_path import private_opener

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable
    from pathlib import Path


class JobResult(RunResult, frozen=True, kw_only=True):
    """What became of a job: the result of its last attempt's run.

    `usage` and `cost` are those of all attempts. A job that was refused when it was to start has
    no run, and its result's `id` is empty.
    """

    job: str
    attempt: int
    """How many attempts there were."""


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a batch."""

    batch: str
    jobs: int
    statuses: dict[str, int]
    """How many jobs have ended how; `not_run`: those that have not."""
    failures: dict[str, int]
    """How many jobs have ended with which kind of failure."""
    attempts: int
    """Of all runs of the batch, like all other figures but `duration` and `attempts_now`."""
    tokens: Usage
    cost: Cost
    started_at: str
    ended_at: str
    duration: float
    """Seconds, of the last run of the batch."""
    attempts_now: int = 0
    """The attempts that were begun in the last run of the batch."""
    left: int = 0
    """How many jobs the same call would run, or go on with, if it were made again."""
    stopped: str | None = None
    """Why not all jobs were done, where somebody or something put an end to it."""
    providers_stopped: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    """Providers with which nothing more was started, and the kind of failure that says why."""
    warnings: tuple[str, ...] = ()
    denied_jobs: int = 0
    """How many jobs were denied something that their permission mode does not deny by itself."""
    denials: tuple[JobDenial, ...] = ()
    """What they were denied, in the order in which the jobs ended: the first 100."""

    @property
    def all_completed(self) -> bool:
        """Whether every job is done, and well."""
        return self.statuses.get("completed", 0) == self.jobs


def job_result(result: RunResult, job: str, attempt: int) -> JobResult:
    """Say which job's a result is."""
    said = {name: getattr(result, name) for name in RunResult.__struct_fields__}
    return JobResult(**said, job=job, attempt=attempt)


def decode_job_result(line: bytes) -> JobResult:
    """Read a line of `results.jsonl` that this version has written."""
    return _decoder.decode(line)


_decoder: Final = msgspec.json.Decoder(JobResult)


class ResultsFile:
    """`results.jsonl`: one line a job."""

    def __init__(self, path: Path, lines: Iterable[bytes]) -> None:
        """Write the file anew, as one step, with what stands already; then lines are added.

        Raises:
            ResultsUnwritable: The system refuses.
        """
        self._path: Final = path
        partial = path.with_name(f"{path.name}.part")
        with _writing(path):
            with open(partial, "wb", opener=private_opener) as file:  # its mode
                file.writelines(line + b"\n" for line in lines)
            partial.replace(path)
            self._file: Final = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)

    def add(self, lines: Iterable[bytes]) -> None:
        """Add lines, whole.

        Raises:
            ResultsUnwritable: The system refuses.
        """
        data = b"".join(line + b"\n" for line in lines)
        with _writing(self._path):
            while data:
                data = data[os.write(self._file, data) :]

    def close(self) -> None:
        """Be done with it."""
        os.close(self._file)


def write_summary(path: Path, summary: Summary) -> None:
    """Write the summary, as one step.

    Raises:
        ResultsUnwritable: The system refuses.
    """
    partial = path.with_name(f"{path.name}.part")
    with _writing(path):
        with open(partial, "wb", opener=private_opener) as file:  # its mode
            file.write(msgspec.json.format(encode_json(summary), indent=2) + b"\n")
        partial.replace(path)


@contextmanager
def _writing(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise ResultsUnwritable(path, error.strerror or error) from error
