"""What is said when a batch is over: how many went well, what did not and why, and what to type."""

from __future__ import annotations

import shlex
from collections import deque
from typing import TYPE_CHECKING, Final

from sessionmgr.cli.amount import count, duration, money, plural
from sessionmgr.cli.safe_text import one_line
from sessionmgr.cli.table import table
from sessionmgr.cli.telling import why_it_ended
from sessionmgr.model import RunStatus

if TYPE_CHECKING:
    from pathlib import Path

    from sessionmgr.batch import JobResult, Summary

SHOWN: Final = 20
"""So many of those that failed, the last ones."""
_STOPS: Final = {
    "auth_failed": "log in, or set its key",
    "billing": "look at its account",
    "quota_exhausted": "wait until there is more, or raise the limit",
}


class Failures:
    """The jobs of this time that did not complete: the last of them, and how many there were."""

    def __init__(self) -> None:
        self.count = 0
        self.cancelled = 0
        self._last: Final[deque[JobResult]] = deque(maxlen=SHOWN)

    def take(self, result: JobResult) -> None:
        """Note a result that is none of the good ones."""
        if result.status is RunStatus.CANCELLED:
            self.cancelled += 1
        else:
            self.count += 1
            self._last.append(result)

    @property
    def last_run(self) -> str | None:
        """The run of the last of them that came to start."""
        return next((each.id for each in reversed(self._last) if each.id), None)

    def lines(self, width: int | None) -> list[str]:
        """Return a table of them."""
        if not self._last:
            return []
        rows = [
            (each.job, _status(each), str(each.attempt), one_line(why_it_ended(each)))
            for each in self._last
        ]
        lines = table(("job", "status", "tries", "why"), rows, width=width, right="tries")
        more = self.count - len(rows)
        return [*lines, f"… and {more} more, before these"] if more else lines


def closing_lines(
    summary: Summary,
    failures: Failures,
    *,
    width: int | None,
    again: list[str],
    out: Path | None,
    stored: bool = True,
) -> list[tuple[str, str]]:
    """Return all that is said, line by line, each with its tone.

    What is not `stored` cannot be looked at more closely.
    """
    lines = [("", "plain"), (_heading(summary), "good" if summary.all_completed else "bad")]
    lines += [
        (f"  {line}", "plain") for line in failures.lines(None if width is None else width - 3)
    ]
    if summary.stopped is not None:
        lines.append((f"stopped early: {one_line(summary.stopped)}", "warning"))
    for provider, kind in summary.providers_stopped.items():
        todo = _STOPS.get(kind, "see what it says")
        lines.append((f"nothing more was started with {provider} ({kind}): {todo}", "warning"))
    return lines + [
        (line, "plain")
        for line in _next(summary, again, out, failures.last_run if stored else None)
    ]


def _heading(summary: Summary) -> str:
    completed = summary.statuses.get("completed", 0)
    others = [
        f"{number} {status.replace('_', ' ')}"
        for status, number in summary.statuses.items()
        if status != "completed" and number
    ]
    used = summary.tokens.input + summary.tokens.cache_write + summary.tokens.output
    facts = [
        f"in {duration(summary.duration)}",
        plural(summary.attempts, "attempt") if summary.attempts != summary.jobs else "",
        f"{count(used)} tokens" if used else "",
        money(summary.cost.usd, summary.cost.provenance),
    ]
    said = f"{completed} of {plural(summary.jobs, 'job')} completed"
    return f"{', '.join([said, *others])} ({', '.join(fact for fact in facts if fact)})"


def _status(result: JobResult) -> str:
    return result.status.replace("_", " ")


def _next(summary: Summary, again: list[str], out: Path | None, shown: str | None) -> list[str]:
    said: list[str] = []
    if out is not None:
        said.append(f"results:      {out / 'results.jsonl'}")
    if shown is not None:
        said.append(f"look closer:  sessionmgr show {shown}")
    if not summary.all_completed and again:
        said.append(f"go on:        {shlex.join(['sessionmgr', *again])}")
    return said
