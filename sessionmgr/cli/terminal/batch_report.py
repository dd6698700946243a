"""The report at the end of a batch: counts, failed jobs and reasons, and the next commands."""

from __future__ import annotations

import shlex
from collections import deque
from glob import escape
from typing import TYPE_CHECKING, Final

from sessionmgr.cli.suggested_command import without_flags
from sessionmgr.cli.terminal.format import format_cost, format_count, format_duration, pluralize
from sessionmgr.cli.terminal.render_events import end_reason
from sessionmgr.cli.terminal.safe_text import display_width, one_line
from sessionmgr.cli.terminal.table import format_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sessionmgr.batch import JobDenial, JobResult, Summary

CONTINUE_HINT: Final = "continue"
"""The name of the hint that is shown only while jobs are left."""
DETAILS_HINT: Final = "details"
_HINT: Final = len(CONTINUE_HINT) + 1
RUN_ID: Final = 12
"""Number of characters of a run's id in the table: enough for `show`."""
SHOWN: Final = 20
"""Maximum number of failed jobs that are shown, the last ones."""
NAMED: Final = 3
"""Maximum number of jobs waiting for a decision that are named."""
_DECISIONS: Final = {"session": "resume", "fresh": "start over"}
"""Labels of the answers to `--retry-from`."""
_GIVEN_ANEW: Final = ("--only", "--limit", "--retry-from")
_STOPS: Final = {
    "auth_failed": "log in, or set its key",
    "billing": "check its account",
    "cli_not_found": "install it, or set command in [options.{provider}]",
    "quota_exhausted": "wait until the quota resets, or raise the limit",
}


class FailureTable:
    """The jobs of this command that did not complete: the last ones, and their number."""

    def __init__(self) -> None:
        self.count = 0
        self.stopped = 0
        """The number of jobs cancelled with the batch, which are reported on one line."""
        self._last: Final[deque[JobResult]] = deque(maxlen=SHOWN)

    def add(self, result: JobResult, *, stopped: bool) -> None:
        """Add a result that is not a success."""
        if stopped:
            self.stopped += 1
        else:
            self.count += 1
            self._last.append(result)

    @property
    def last_run(self) -> tuple[str, str] | None:
        """The last run that started, and its job."""
        return next(((each.id, each.job) for each in reversed(self._last) if each.id), None)

    def lines(self, width: int | None) -> list[str]:
        """Return the table as lines."""
        if not self._last:
            return []
        rows = [
            (
                *(each.job, _status(each), str(each.attempt)),
                "" if each.duration is None else format_duration(each.duration),
                format_cost(each.cost.usd, each.cost.provenance).removesuffix(" (partial)") or "-",
                each.id[:RUN_ID],
                one_line(end_reason(each)),
            )
            for each in self._last
        ]
        titles = ("job", "status", "attempts", "took", "cost", "run", "why")
        lines = format_table(titles, rows, width=width, right="attempts took cost")
        more = self.count - len(rows)
        return [*lines, f"… and {more} earlier ones"] if more else lines


def report_lines(
    summary: Summary,
    failures: FailureTable,
    *,
    width: int | None,
    hints: Mapping[str, str],
) -> list[tuple[str, str]]:
    """Return the lines of the report, each with its tone."""
    tone = "good" if summary.all_completed else "bad"
    if summary.all_completed and summary.denied_jobs:
        tone = "warning"
    lines = [("", "plain"), *((line, tone) for line in _heading(summary, width))]
    lines += [
        (f"  {line}", "plain") for line in failures.lines(None if width is None else width - 3)
    ]
    lines += denial_lines(summary, width=width)
    if summary.stopped is not None:
        lines.append((f"stopped early: {one_line(summary.stopped)}", "warning"))
    for provider, kind in summary.providers_stopped.items():
        todo = _STOPS.get(kind, "see its message").format(provider=provider)
        lines.append((f"no more jobs were started with {provider} ({kind}): {todo}", "warning"))
    steps = dict(hints)
    again = steps.get(CONTINUE_HINT)
    if not summary.left:
        steps.pop(CONTINUE_HINT, None)
    if again is not None:
        steps |= _decisions(again, summary.undecided)
    return lines + [(f"{f'{name}:':<{_HINT}}  {said}", "plain") for name, said in steps.items()]


def _decisions(again: str, undecided: Mapping[str, str]) -> dict[str, str]:
    """Return the commands for jobs that wait for a decision; `again` continues the batch."""
    steps: dict[str, str] = {}
    for retry_from, label in _DECISIONS.items():
        jobs = sorted(job for job, needed in undecided.items() if needed == retry_from)
        if not jobs:
            continue
        named = jobs[:NAMED]
        words = without_flags(shlex.split(again), *_GIVEN_ANEW)
        for job in named:
            words += ["--only", escape(job)]
        names = ", ".join([*map(one_line, named), *(["…"] if len(jobs) > NAMED else [])])
        steps[f"{label} ({names})"] = shlex.join([*words, "--retry-from", retry_from])
    return steps


def denial_lines(summary: Summary, *, width: int | None) -> list[tuple[str, str]]:
    """Return the denials, in yellow; empty if there are none."""
    rows = [
        (each.job, _requested_action(each), one_line(each.reason or ""))
        for each in summary.denials[:SHOWN]
    ]
    if not rows:
        return []
    lines = format_table(("job", "denied", "why"), rows, width=None if width is None else width - 3)
    more = len(summary.denials) - len(rows)
    if more:
        lines.append(f"… and {more} more: see summary.json")
    them = "it" if summary.denied_jobs == 1 else "them"
    what = f"{pluralize(summary.denied_jobs, 'job')} had denials"
    again = f"--approve FILE --on-denied fail runs {them} again with your rules"
    heading = [f"{what}; {again}"]
    if width is not None and display_width(heading[0]) > width:
        heading = [what, again]
    return [(line, "warning") for line in (*heading, *(f"  {line}" for line in lines))]


def describe_denial(denial: JobDenial) -> str:
    """Describe on one line what was denied, and why."""
    why = f" ({one_line(denial.reason)})" if denial.reason else ""
    return f"{_requested_action(denial)}{why}"


def _requested_action(denial: JobDenial) -> str:
    tool = one_line(denial.tool_name or "a tool")
    return f"{tool}: {one_line(denial.summary)}" if denial.summary else tool


def _heading(summary: Summary, width: int | None) -> list[str]:
    completed = summary.statuses.get("completed", 0)
    others = [
        f"{number} {status.replace('_', ' ')}"
        for status, number in summary.statuses.items()
        if status != "completed" and number
    ]
    used = summary.tokens.input + summary.tokens.cache_write + summary.tokens.output
    facts = [
        f"in {format_duration(summary.duration)}",
        *_attempts(summary),
        f"{format_count(used)} tokens" if used else "",
        format_cost(summary.cost.usd, summary.cost.provenance) or ("cost unknown" if used else ""),
    ]
    if summary.denied_jobs:
        others.append(f"{summary.denied_jobs} with denials")
    said = ", ".join([f"{completed} of {pluralize(summary.jobs, 'job')} completed", *others])
    beside = f"({', '.join(fact for fact in facts if fact)})"
    both = f"{said} {beside}"
    return [both] if width is None or display_width(both) <= width else [said, beside]


def _attempts(summary: Summary) -> list[str]:
    """Report the attempts of this command, and those of the whole batch if there are more."""
    now, in_all = summary.attempts_now, summary.attempts
    if now != in_all:
        return [f"{pluralize(now, 'attempt')}, {in_all} in total"]
    return [pluralize(now, "attempt")] if now != summary.jobs else []


def _status(result: JobResult) -> str:
    return result.status.replace("_", " ")
