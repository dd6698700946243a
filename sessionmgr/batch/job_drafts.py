"""Drafts of jobs, made from the jobs file and the files that it names; reading may block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from sessionmgr.batch.job import FIELDS, Job, job_digests
from sessionmgr.batch.job_files import load_job_files
from sessionmgr.batch.problems import Problem

if TYPE_CHECKING:
    from sessionmgr.batch.jobs_file import JobSource
    from sessionmgr.batch.settings import BatchSettings


class JobDraft(msgspec.Struct, frozen=True, kw_only=True):
    """A job as read from its file and the files that it names."""

    line: int
    where: str
    id: str | None = None
    job: Job | None = None
    """None if the job cannot be read; the problems say why."""
    digests: dict[str, str] = {}
    own: frozenset[str] = frozenset()
    """The fields that the job itself sets, without the batch's defaults."""
    problems: tuple[Problem, ...] = ()


class JobDraftReader:
    """Makes drafts of a source's jobs, filling gaps from the settings."""

    def __init__(self, source: JobSource, settings: BatchSettings) -> None:
        self._source: Final = source
        self._settings: Final = settings

    def read_draft(self, line: int, found: Job | list[Problem]) -> JobDraft:
        """Read the files that a job names.

        Raises:
            OSError: An image is no longer readable.
        """
        where = self._source.location(line)
        if isinstance(found, list):
            return JobDraft(line=line, where=where, problems=tuple(found))
        defaults = self._settings.defaults
        provider = found.provider or (defaults.provider if defaults is not None else None)
        job = found.with_defaults(
            self._settings.provider_defaults.get(provider or "")
        ).with_defaults(defaults)
        given = self._settings.options.get(job.provider or "")
        if given:
            job = replace(job, options={**given, **(job.options or {})})
        complete = load_job_files(job, where)
        if isinstance(complete, Problem):
            return JobDraft(line=line, where=where, id=job.id, problems=(complete,))
        return JobDraft(
            line=line,
            where=where,
            id=job.id,
            job=complete,
            digests=job_digests(complete, complete.cwd),
            own=frozenset(name for name in FIELDS if getattr(found, name) is not None),
        )
