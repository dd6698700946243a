"""What is said when a batch is over: how many went well, what did not and why, and what to type."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from sessionmgr.cli.amount import count, duration, money, plural
from sessionmgr.cli.safe_text import cells, one_line
from sessionmgr.cli.table import table
from sessionmgr.cli.telling import why_it_ended

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sessionmgr.batch import JobResult, Summary

GO_ON: Final = "go on"
"""The hint that is given only where something is left to do."""
LOOK_CLOSER: Final = "look closer"
_HINT: Final = len(LOOK_CLOSER) + 1
SHOWN: Final = 20
"""So many of those that failed, the last ones."""
_STOPS: Final = {
    "auth_failed": "log in, or set its key",
    "billing": "look at its account",
    "cli_not_found": "install it, or set its command in [options.PROVIDER]",
    "quota_exhausted": "wait until there is more, or raise the limit",
}


class Failures:
    """The jobs of this time that did not complete: the last of them, and how many there were."""

    def __init__(self) -> None:
        self.count = 0
        self.stopped = 0
        """Cancelled with the batch, which is said once for all of them."""
        self._last: Final[deque[JobResult]] = deque(maxlen=SHOWN)

    def take(self, result: JobResult, *, stopped: bool) -> None:
        """Note a result that is none of the good ones."""
        if stopped:
            self.stopped += 1
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
    hints: Mapping[str, str],
) -> list[tuple[str, str]]:
    """Return all that is said, line by line, each with its tone."""
    tone = "good" if summary.all_completed else "bad"
    lines = [("", "plain"), *((line, tone) for line in _heading(summary, width))]
    lines += [
        (f"  {line}", "plain") for line in failures.lines(None if width is None else width - 3)
    ]
    if summary.stopped is not None:
        lines.append((f"stopped early: {one_line(summary.stopped)}", "warning"))
    for provider, kind in summary.providers_stopped.items():
        todo = _STOPS.get(kind, "see what it says")
        lines.append((f"nothing more was started with {provider} ({kind}): {todo}", "warning"))
    steps = dict(hints)
    if summary.all_completed:
        steps.pop(GO_ON, None)
    return lines + [(f"{f'{name}:':<{_HINT}}  {said}", "plain") for name, said in steps.items()]


def _heading(summary: Summary, width: int | None) -> list[str]:
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
    said = ", ".join([f"{completed} of {plural(summary.jobs, 'job')} completed", *others])
    beside = f"({', '.join(fact for fact in facts if fact)})"
    both = f"{said} {beside}"
    return [both] if width is None or cells(both) <= width else [said, beside]


def _status(result: JobResult) -> str:
    return result.status.replace("_", " ")
