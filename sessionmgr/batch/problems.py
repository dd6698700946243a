"""Problems of a batch's jobs, collected while they are read."""

from __future__ import annotations

from typing import Final

import msgspec

SHOWN: Final = 25
"""Maximum number of problems printed one by one."""


class Problem(msgspec.Struct, frozen=True):
    """A problem of a job: its location, its field, and a description."""

    where: str
    field: str
    what: str

    def __str__(self) -> str:
        return ": ".join(filter(None, (self.where, self.field, self.what)))


class Problems:
    """Problems in order of occurrence; a problem shared by several jobs is printed once."""

    def __init__(self) -> None:
        self._first: Final[dict[tuple[str, str], Problem]] = {}
        self._count: Final[dict[tuple[str, str], int]] = {}
        self.unprinted = 0
        """The number of problems that are not printed."""

    def __bool__(self) -> bool:
        return bool(self._first)

    def add(self, problem: Problem) -> None:
        """Add a problem."""
        key = (problem.field, problem.what)
        if key not in self._first and len(self._first) >= SHOWN:
            self.unprinted += 1
            return
        self._first.setdefault(key, problem)
        self._count[key] = self._count.get(key, 0) + 1

    def lines(self) -> list[str]:
        """Return the lines to print, one for each problem."""
        return [
            f"{problem}{_more_jobs(self._count[key] - 1) if problem.where else ''}"
            for key, problem in self._first.items()
        ]


def _more_jobs(count: int) -> str:
    if not count:
        return ""
    return f" (and {count} other job{'s' if count > 1 else ''})"
