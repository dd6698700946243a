"""Jobs file: JSON objects, one per line, read as a stream with the location of each mistake.

The reader never holds a whole file in memory, so the size of a file does not matter.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import msgspec
import trio

from sessionmgr.batch.duplicate_names import find_duplicate_names
from sessionmgr.batch.errors import JobsInvalid
from sessionmgr.batch.field_types import field_type_error, parse_durations
from sessionmgr.batch.file_format import HEAD, foreign_format_error
from sessionmgr.batch.job import FIELDS, Job
from sessionmgr.batch.json_syntax import json_syntax_error
from sessionmgr.batch.problems import Problem
from sessionmgr.manager import ArgumentTypeInvalid
from sessionmgr.model import PermissionMode, describe_value
from sessionmgr.process import make_private_directory, private_opener

if TYPE_CHECKING:
    from trio.abc import ReceiveStream

Jobs: TypeAlias = str | Path | Iterable[Job | Mapping[str, object]]
"""A jobs file, or the jobs themselves; a mapping has the fields of a line of the file."""

LONGEST: Final = 64 * 1024 * 1024
_BOM: Final = b"\xef\xbb\xbf"
_BEGIN: Final = 1


def require_jobs(call: str, jobs: Jobs) -> None:
    """Check that `jobs` is a file or `Job`s; lazily made jobs are checked one by one.

    Raises:
        ArgumentTypeInvalid: `jobs` is something else.
    """
    if isinstance(jobs, str | Path):
        return
    given = cast("object", jobs)
    if not isinstance(given, Iterable) or isinstance(given, bytes | Mapping):
        raise ArgumentTypeInvalid(call, "jobs", jobs, "a file of jobs or an iterable of Job")
    if isinstance(jobs, Sequence):
        for number, job in enumerate(jobs):
            _require_job(call, number, job)


def _require_job(call: str, number: int, job: object) -> None:
    if not isinstance(job, Job | Mapping):
        wanted = "a Job, such as Job(id='a', prompt='…'), or a dict of its fields"
        raise ArgumentTypeInvalid(call, f"jobs[{number}]", job, wanted)


class JobSource:
    """Source of jobs, one after the other, each with its location."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs: Final = jobs

    def location(self, line: int) -> str:
        """Return the name of a job's location, for messages.

        Args:
            line: The line of the file, or the number of the job if a program passes the jobs.
        """
        if isinstance(self._jobs, str | Path):
            return f"{self._jobs}:{line}"
        return f"job {line}"

    @property
    def path(self) -> Path | None:
        """The file's canonical path; None if a program passes the jobs."""
        is_file = isinstance(self._jobs, str | Path)
        return Path(str(self._jobs)).resolve() if is_file else None

    def __str__(self) -> str:
        return str(self._jobs) if isinstance(self._jobs, str | Path) else "jobs"

    def __iter__(self) -> Iterator[tuple[int, Job | list[Problem]]]:
        """Read the jobs; for an invalid job, yield its problems instead.

        Raises:
            OSError: The file cannot be read.
        """
        if isinstance(self._jobs, str | Path):
            yield from self._lines(Path(self._jobs))
        else:
            for line, job in enumerate(self._jobs, _BEGIN):
                _require_job("jobs", line - _BEGIN, job)
                fields = msgspec.structs.asdict(job) if isinstance(job, Job) else job
                yield line, _check_types(fields, self.location(line))

    def require_jobs_file(self) -> None:
        """Refuse a file of another format; an unreadable file passes.

        Raises:
            JobsInvalid: The file has another format; the error names it and the conversion.
        """
        if self.path is not None and self.path.is_file():
            with self.path.open("rb") as file:
                foreign = foreign_format_error(file.read(HEAD), str(self))
            if foreign is not None:
                raise JobsInvalid([f"{self}: {foreign}"])

    def _lines(self, path: Path) -> Iterator[tuple[int, Job | list[Problem]]]:
        with io.BufferedReader(io.FileIO(path), HEAD) as file:
            foreign = foreign_format_error(file.peek(HEAD)[:HEAD], str(path))
            if foreign is not None:
                yield _BEGIN, [Problem(str(path), "", foreign)]
                return
            line = 0
            while data := file.readline(LONGEST + 1):
                line += 1
                if line == _BEGIN:
                    data = data.removeprefix(_BOM)
                if len(data) > LONGEST:
                    what = f"the line is longer than {LONGEST // 1024 // 1024} MiB"
                    yield line, [Problem(self.location(line), "", what)]
                    return
                if data.strip():
                    yield line, parse_job(data, self.location(line))


def parse_job(data: bytes, where: str) -> Job | list[Problem]:
    """Parse one job; return its problems if it is invalid."""
    try:
        value: object = msgspec.json.decode(data)
    except UnicodeDecodeError as error:
        return [Problem(f"{where}:{_column(data, error)}", "", "the line is not UTF-8")]
    except RecursionError:
        return [Problem(where, "", "the object is nested too deep")]
    except msgspec.DecodeError as error:
        column, what = json_syntax_error(data, str(error))
        return [Problem(f"{where}:{column}", "", what)]
    if not isinstance(value, dict):
        return [Problem(where, "", f"expected a JSON object, got {describe_value(value)}")]
    fields = cast("dict[str, object]", value)
    if doubled := find_duplicate_names(data):
        return [Problem(where, name, what) for name, what in doubled]
    return _convert_job(fields, where)


def _check_types(job: Mapping[str, object], where: str) -> Job | list[Problem]:
    """Check the types of the fields of a job that a program passes as a mapping."""
    fields: dict[str, object] = {}
    for name, value in job.items():
        if not isinstance(cast("object", name), str):
            return [Problem(where, "", f"the name of a field must be a str, not {name!r}")]
        try:
            fields[name] = msgspec.to_builtins(value, enc_hook=_plain)
        except (TypeError, NotImplementedError) as error:
            return [Problem(where, name, f"the value is not JSON: {error}")]
    return _convert_job({name: value for name, value in fields.items() if value is not None}, where)


def _plain(value: object) -> object:
    """Convert a path or a mapping that is not a dict; JSON has neither.

    Raises:
        TypeError: The value is neither.
    """
    if isinstance(value, os.PathLike):
        return os.fspath(cast("os.PathLike[str]", value))
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, object]", value))
    raise TypeError(f"objects of type {type(value).__name__} are not supported")


def _convert_job(fields: dict[str, object], where: str) -> Job | list[Problem]:
    problems = [
        Problem(where, name, unknown_name_error(name, FIELDS)) for name in fields.keys() - {*FIELDS}
    ]
    if "id" not in fields:
        problems.append(Problem(where, "", 'missing "id": every job needs a unique id'))
    mode = fields.get("permission_mode")
    if isinstance(mode, str) and mode not in list(PermissionMode):
        what = unknown_name_error(mode, tuple(PermissionMode), "permission mode")
        problems.append(Problem(where, "permission_mode", what))
    if problems:
        order = ["", *fields]
        return sorted(problems, key=lambda problem: order.index(problem.field))
    try:
        return msgspec.convert(parse_durations(fields), Job)
    except msgspec.ValidationError as error:
        return [Problem(where, *field_type_error(error, fields))]


def _column(data: bytes, error: UnicodeDecodeError) -> int:
    try:
        data.decode()
    except UnicodeDecodeError as found:
        error = found  # the decoder's message covers only one string of the line
    return len(data[: error.start].decode("utf-8", "replace")) + 1


def unknown_name_error(name: str, known: Iterable[str], kind: str = "field") -> str:
    """Return the message about an unknown name, with the nearest known name."""
    known = [str(each) for each in known]
    what = f"unknown {kind}" if kind == "field" else f"unknown {kind} {name!r}"
    if nearest := get_close_matches(name, known, n=1):
        return f"{what}; did you mean {nearest[0]!r}?"
    return f"{what}; known: {', '.join(known)}"


def unreadable_file_error(source: str, error: OSError) -> str:
    """Return why a jobs file cannot be read."""
    if isinstance(error, IsADirectoryError):
        return f"{source}: is a directory; give a file with one JSON object per line"
    if isinstance(error, FileNotFoundError):
        return f"{source}: no such file; give a file with one JSON object per line"
    return f"{source}: {error.strerror or error}"


async def spool_jobs(stream: ReceiveStream, directory: str | Path) -> Path:
    """Store jobs from a stream in the batch's directory, and return the file.

    Args:
        stream: The stream of jobs, one JSON object per line.
        directory: The directory of the batch.

    Raises:
        JobsInvalid: The stream contains no jobs; stored jobs are left unchanged.
    """
    path = trio.Path(directory) / "jobs.jsonl"
    await trio.to_thread.run_sync(make_private_directory, Path(directory))
    partial = path.with_name(f"jobs.jsonl.{os.getpid()}.part")
    is_empty = True
    # The file contains the jobs' environment variables, so only its owner may read it.
    async with await trio.open_file(partial, "wb", opener=private_opener) as file:
        async for chunk in stream:
            is_empty = is_empty and not chunk.strip()
            await file.write(chunk)
    if is_empty:
        await partial.unlink()
        what = f"; the jobs in {path} are unchanged" if await path.exists() else ""
        with suppress(OSError):  # the directory already exists
            await path.parent.rmdir()
        raise JobsInvalid([f"stdin: contains no jobs{what}"])
    if await path.exists():  # kept: the new jobs may be invalid
        await path.replace(path.with_name("jobs.jsonl.before"))
    await partial.replace(path)
    return Path(path)
