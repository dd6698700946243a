"""Whether the providers of a batch's jobs can be used, found out once for all that are alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.batch.wish import wish_of
from sessionmgr.model import encode_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from sessionmgr.batch.job import Job
    from sessionmgr.manager import Manager
    from sessionmgr.provider import Health


class _Unready(msgspec.Struct):
    """A provider that cannot be used, and the jobs that need it."""

    provider: str
    detail: str
    first: str
    count: int = 0


class Readiness:
    """Collects why providers cannot be used; each reason is reported once."""

    def __init__(self, ask: Callable[[Job], Health]) -> None:
        self._ask: Final = ask
        self._known: Final[dict[tuple[object, ...], Health]] = {}
        self._unready: Final[dict[tuple[str, str], _Unready]] = {}

    def has(self, job: Job, where: str) -> bool:
        """Say whether the provider of a job that is to be run can be used for it."""
        provider, cwd = job.provider or "", job.cwd or "."
        key = (provider, cwd, encode_json({**(job.options or {}), "env ": dict(job.env or {})}))
        if key not in self._known:
            self._known[key] = self._ask(job)
        health = self._known[key]
        if health.state == "ok":
            return True
        found = _Unready(provider, health.detail, where)
        self._unready.setdefault((provider, health.detail), found).count += 1
        return False

    def problems(self) -> list[str]:
        """Return a line for each reason, with how many jobs it concerns."""
        return [
            f"{each.provider}: {each.detail} ({each.first}{_others(each.count - 1)})"
            for each in self._unready.values()
        ]


def readiness_of(manager: Manager, job: Job) -> Health:
    """Say whether the provider of a job could be used by a manager.

    Raises:
        StartRefused: The job would be refused.
        VariableRefused: A variable may not be given to a child.
    """
    return manager.readiness(job.provider or "", wish_of(job), cwd=job.cwd or ".")


def _others(count: int) -> str:
    if not count:
        return ""
    return f" and {count} other job{'s' if count > 1 else ''}"
