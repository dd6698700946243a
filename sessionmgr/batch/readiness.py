"""Readiness of the providers of a batch's jobs, checked once for all jobs with equal needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.batch.run_request import run_request_for_job
from sessionmgr.model import encode_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from sessionmgr.adapter import Health
    from sessionmgr.batch.job import Job
    from sessionmgr.manager import Manager


class _UnreadyProvider(msgspec.Struct):
    """An unusable provider, and the jobs that need it."""

    provider: str
    detail: str
    first: str
    count: int = 0


class ReadinessCheck:
    """Collects the reasons why providers are unusable; each is reported once."""

    def __init__(self, ask: Callable[[Job], Health]) -> None:
        self._ask: Final = ask
        self._known: Final[dict[tuple[object, ...], Health]] = {}
        self._unready: Final[dict[tuple[str, str], _UnreadyProvider]] = {}

    def check(self, job: Job, where: str) -> bool:
        """Return whether a job that is about to run can use its provider; if not, note why."""
        provider, cwd = job.provider or "", job.cwd or "."
        key = (provider, cwd, encode_json({**(job.options or {}), "env ": dict(job.env or {})}))
        if key not in self._known:
            self._known[key] = self._ask(job)
        health = self._known[key]
        if health.state == "ok":
            return True
        found = _UnreadyProvider(provider, health.detail, where)
        self._unready.setdefault((provider, health.detail), found).count += 1
        return False

    def problems(self) -> list[str]:
        """Return one line for each reason, with the number of affected jobs."""
        return [
            f"{each.provider}: {each.detail} ({each.first}{_other_jobs(each.count - 1)})"
            for each in self._unready.values()
        ]


def provider_readiness(manager: Manager, job: Job) -> Health:
    """Report whether a manager can use a job's provider.

    Raises:
        StartRefused: The job would be refused.
        EnvironmentVariableInvalid: A child may not get a variable.
    """
    return manager.readiness(job.provider or "", run_request_for_job(job), cwd=job.cwd or ".")


def _other_jobs(count: int) -> str:
    if not count:
        return ""
    return f" and {count} other job{'s' if count > 1 else ''}"
