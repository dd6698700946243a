"""A batch that is only thought of: each job with what would become of it, and nothing is done."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from sessionmgr.cli.amount import plural
from sessionmgr.cli.output import note, say, say_json
from sessionmgr.cli.safe_text import one_line

if TYPE_CHECKING:
    from sessionmgr.batch import DryRun, PlannedJob

_WORDS: Final = {
    "run": "would run",
    "resume": "would go on",
    "done": "is done",
    "left": "is left out",
    "undecided": "waits for a decision (--retry-from)",
}
_COUNTED: Final = {
    **_WORDS,
    "done": "done",
    "left": "left out",
    "undecided": "waiting for a decision (--retry-from)",
}


async def show_plan(planned: DryRun, *, as_json: bool, quiet: bool) -> None:
    """Print what would become of each job.

    Raises:
        JobsInvalid: Some jobs cannot be done.
    """
    counts = Counter[str]()
    async with planned:
        async for each in planned:
            counts[each.action] += 1
            if as_json:
                say_json(each)
            else:
                say(in_words(each))
    if not quiet:
        for warning in planned.warnings:
            note(f"warning: {warning}")
    if not (quiet or as_json):
        said = ", ".join(f"{number} {_COUNTED[action]}" for action, number in counts.items())
        jobs = plural(sum(counts.values()), "job")
        note(f"dry run: {jobs}{f' ({said})' if said else ''}; nothing was started")


def in_words(planned: PlannedJob) -> str:
    """Say in one line what would become of a job."""
    line = f"{planned.job}: {_WORDS[planned.action]} with {planned.provider}"
    permission = planned.permission
    if permission is not None:
        line += f", {permission.asked} as {permission.effective} ({permission.fidelity})"
    if planned.negotiation is not None and planned.negotiation.degraded:
        lost = [f"{each.name} ({each.why})" for each in planned.negotiation.degraded]
        line += f", degraded: {', '.join(lost)}"
    return one_line(line)
