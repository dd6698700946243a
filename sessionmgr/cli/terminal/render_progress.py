"""Rendering of a batch's progress: lines for a terminal of a given size, or one line for a file.

The functions are pure, and columns keep their position from one update to the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from sessionmgr.cli.terminal.format import (
    format_age,
    format_cost,
    format_count,
    format_duration,
    format_rate,
    pluralize,
)
from sessionmgr.cli.terminal.format_path import last_part
from sessionmgr.cli.terminal.format_time import format_clock
from sessionmgr.cli.terminal.safe_text import (
    display_width,
    one_line,
    pad_to_width,
    truncate,
    truncate_middle,
)
from sessionmgr.model import parse_timestamp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.batch import BatchProgress, PauseStatus, RunningJob, WaitStatus


class StyledText(NamedTuple):
    """Text in one tone of `sessionmgr.cli.terminal.colour`."""

    text: str
    tone: str = "plain"


Line: TypeAlias = tuple[StyledText, ...]

_GAP: Final = "  "
_WIDE: Final = 60
"""Minimum width for the column of the provider."""
_PROVIDER: Final = 8
_DIRECTORY: Final = 10
_WIDER: Final = 110
"""Minimum width for a wider column of the directory."""
_AGE: Final = 6
_SHORTEST_NAME: Final = 8
_LONGEST_NAME: Final = 40
_SHORTEST_BAR: Final = 10
_LONGEST_BAR: Final = 60
_FEW: Final = 6
"""Rows below which the facts take one line only."""


def render_progress(progress: BatchProgress, width: int, height: int) -> list[Line]:
    """Render the progress in less than `height` lines, each of less than `width` columns.

    The last column stays free, since terminals differ in what they do after writing to it.
    """
    width, room = max(1, width - 1), max(1, height - 1)
    head = [_bar(progress, width), *_facts(progress, width, most=1 if room < _FEW else 4)][:room]
    return head + _jobs(progress.jobs, width, room - len(head))


def progress_line(progress: BatchProgress) -> str:
    """Render the progress as one line."""
    said = [piece.text for piece in _counts(progress)] + _pace(progress)
    line = f"{_elapsed(progress)}: {', '.join(said)}; {format_duration(progress.elapsed)} elapsed"
    line += "".join(f"; {each}" for each in describe_waits(progress))
    if progress.jobs:
        oldest = progress.jobs[0]
        doing = truncate(one_line(oldest.doing), _LONGEST_NAME)
        line += f"; oldest: {one_line(oldest.job)}, {format_age(oldest.age)} ({doing})"
    return line


def line_width(line: Line) -> int:
    """Return the width of a line in columns."""
    return sum(display_width(piece.text) for piece in line)


def _bar(progress: BatchProgress, width: int) -> Line:
    said = f"{_elapsed(progress)}{_GAP}{format_duration(progress.elapsed)}"
    length = min(width - display_width(said) - len(_GAP), _LONGEST_BAR)
    if not progress.total or length < _SHORTEST_BAR:
        return (StyledText(truncate(said, width)),)
    ended = progress.done + progress.failed + progress.cancelled
    share = length / max(progress.total, ended)
    lost = round(share * (progress.failed + progress.cancelled))
    full = max(round(share * ended), lost)
    pieces = (
        StyledText("━" * (full - lost), "good"),
        StyledText("━" * lost, "bad"),
        StyledText("─" * (length - full), "faint"),
        StyledText(_GAP + said),
    )
    return tuple(piece for piece in pieces if piece.text)


def _elapsed(progress: BatchProgress) -> str:
    ended = progress.done + progress.failed + progress.cancelled
    if progress.total is None:
        return f"{pluralize(ended, 'job')}, more are being read"
    return f"{ended} of {pluralize(progress.total, 'job')}"


def _counts(progress: BatchProgress) -> list[StyledText]:
    counts = (
        StyledText(f"{progress.done} done", "good" if progress.done else "plain"),
        StyledText(f"{progress.failed} failed", "bad"),
        StyledText(f"{progress.cancelled} cancelled", "warning"),
        StyledText(f"{progress.running} running"),
        StyledText(f"{progress.waiting} waiting"),
        StyledText(f"{progress.retrying} to be retried", "warning"),
        StyledText(f"{progress.denied} with denials", "warning"),
    )
    always = {counts[0], counts[3]}
    return [each for each in counts if each in always or not each.text.startswith("0 ")]


def _pace(progress: BatchProgress) -> list[str]:
    said = [
        format_rate(progress.rate) if progress.rate else "",
        f"{format_duration(progress.eta)} left" if progress.eta is not None else "",
        f"{format_count(progress.tokens)} tokens" if progress.tokens else "",
        format_cost(progress.usd, progress.provenance),
    ]
    return [each for each in said if each]


def describe_waits(progress: BatchProgress) -> list[str]:
    """List the waits of the jobs, with reason and end."""
    return [
        *(f"waiting for the {each.what}: {describe_wait(each)}" for each in progress.waits),
        *(_describe_pause(provider, pause) for provider, pause in progress.pauses.items()),
    ]


def describe_wait(wait: WaitStatus) -> str:
    """Describe a wait: its reason and its duration so far."""
    why = one_line(wait.why) if wait.why else "locked by another process, or its disk is slow"
    return f"{why} ({format_duration(wait.seconds)} so far)"


def _describe_pause(provider: str, pause: PauseStatus) -> str:
    at = parse_timestamp(pause.until)
    why = f" ({one_line(pause.why)})" if pause.why else ""
    until = format_clock(at, at - pause.seconds)
    return f"{one_line(provider)} paused until {until}, {format_duration(pause.seconds)} to go{why}"


def _facts(progress: BatchProgress, width: int, *, most: int) -> list[Line]:
    """Join the facts in as few lines as possible."""
    held = [StyledText(each, "warning") for each in describe_waits(progress)]
    facts = _counts(progress)
    pace = [StyledText(each, "faint") for each in _pace(progress)]
    rows: list[list[StyledText]] = [[]]
    for fact in [*facts, *pace]:
        text = truncate(fact.text, width)
        taken = line_width(tuple(rows[-1]))
        if rows[-1] and taken + len(_GAP) + display_width(text) > width:
            rows.append([])
        gap = [StyledText(_GAP)] if rows[-1] else []
        rows[-1] += [*gap, StyledText(text, fact.tone)]
    above = [(StyledText(truncate(each.text, width), each.tone),) for each in held]
    return [*above, *(tuple(row) for row in rows)][:most]


def _jobs(jobs: Sequence[RunningJob], width: int, room: int) -> list[Line]:
    """Render the oldest jobs, as many as fit, and the number of the others."""
    if room < 1 or not jobs:
        return []
    if len(jobs) <= room:
        return [_job(job, width) for job in jobs]
    left_out = len(jobs) - (room - 1)
    rest = truncate(f"{_GAP}… and {left_out} more", width)
    return [*(_job(job, width) for job in jobs[: room - 1]), (StyledText(rest, "faint"),)]


def _job(job: RunningJob, width: int) -> Line:
    name = min(_LONGEST_NAME, max(_SHORTEST_NAME, width // (4 if width >= _WIDE else 3)))
    parts = [StyledText(_GAP + pad_to_width(truncate_middle(one_line(job.job), name), name) + _GAP)]
    if width >= _WIDE:
        parts.append(StyledText(pad_to_width(one_line(job.provider), _PROVIDER) + _GAP, "faint"))
        if job.directory:
            room = _DIRECTORY if width < _WIDER else 2 * _DIRECTORY
            directory = truncate_middle(one_line(last_part(job.directory)), room)
            parts.append(StyledText(pad_to_width(directory, room) + _GAP))
    parts.append(StyledText(f"{format_age(job.age):>{_AGE}}{_GAP}", "faint"))
    left = width - line_width(tuple(parts))
    if left < 1:
        return (StyledText(truncate("".join(part.text for part in parts), width)),)
    again = f"try {job.attempt}: " if job.attempt > 1 else ""
    since = f", {format_age(job.doing_for)}" if job.doing_for >= 1 else ""
    doing = truncate(again + one_line(job.doing), max(0, left - len(since)))
    return (*parts, StyledText(truncate(doing + since, left)))
