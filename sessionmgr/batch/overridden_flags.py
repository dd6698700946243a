"""Flags overridden by jobs that set the same limit themselves: the job's own value counts."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from collections.abc import Collection

    from sessionmgr.batch.job import Job
    from sessionmgr.batch.settings import BatchSettings

_LIMITS: Final = (
    *("deadline", "budget_usd", "max_turns"),
    *("permission_mode", "tools_allowed", "tools_denied"),
)


class OverriddenFlags:
    """Collects the jobs whose own limits override a flag."""

    def __init__(self, settings: BatchSettings) -> None:
        said = settings.defaults
        sources = {name: settings.sources.get(name, "") for name in _LIMITS}
        self._flags: Final = {
            name: (source, getattr(said, name, None))
            for name, source in sources.items()
            if source.startswith("-")
        }
        self._first: Final[dict[str, Job]] = {}
        self._count: Final = Counter[str]()

    def add_job(self, job: Job, own: Collection[str]) -> None:
        """Check a job that will run; `own` are the fields that it sets itself."""
        for name, (_, value) in self._flags.items():
            if name in own and getattr(job, name) != value:
                self._first.setdefault(name, job)
                self._count[name] += 1

    def warnings(self) -> list[str]:
        """Return a warning for each flag that some job overrides."""
        said: list[str] = []
        for name, job in self._first.items():
            flag, value = self._flags[name]
            jobs, first = self._count[name], _format_limit(name, getattr(job, name))
            which = f"job {job.id!r} keeps its own {name} ({first})"
            if jobs > 1:
                which = f"{jobs} jobs keep their own {name} (the first is {job.id!r}: {first})"
            said.append(f"{flag} {_format_limit(name, value)}: {which}")
        return said


def _format_limit(name: str, value: object) -> str:
    if value is None:
        return "0"  # the value of the flag that turns the deadline off
    if isinstance(value, float):
        return f"{value:g}{'s' if name == 'deadline' else ''}"
    if isinstance(value, tuple):
        return ",".join(cast("tuple[str, ...]", value)) or '""'
    return str(value)
