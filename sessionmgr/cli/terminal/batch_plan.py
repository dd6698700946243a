"""Output of a dry run: what a batch would do with each job."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from sessionmgr.cli.terminal.format import pluralize
from sessionmgr.cli.terminal.safe_text import one_line
from sessionmgr.cli.terminal.stdout import print_json, print_line, print_note

if TYPE_CHECKING:
    from sessionmgr.batch import DryRun, PlannedJob

_WORDS: Final = {
    "run": "would run",
    "resume": "would resume",
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
    """Print what the batch would do with each job.

    Raises:
        JobsInvalid: Some jobs are invalid.
    """
    counts = Counter[str]()
    async with planned:
        async for each in planned:
            counts[each.action] += 1
            if as_json:
                print_json(each)
            else:
                print_line(describe_plan(each))
    if not quiet:
        for warning in planned.warnings:
            print_note(f"warning: {warning}")
    if not (quiet or as_json):
        said = ", ".join(f"{number} {_COUNTED[action]}" for action, number in counts.items())
        jobs = pluralize(sum(counts.values()), "job")
        print_note(f"dry run: {jobs}{f' ({said})' if said else ''}; nothing was started")


def describe_plan(planned: PlannedJob) -> str:
    """Describe on one line what the batch would do with a job."""
    line = f"{planned.job}: {_WORDS[planned.action]} with {planned.provider}"
    permission = planned.permission
    if permission is not None:
        line += f", {permission.asked} as {permission.effective} ({permission.fidelity})"
    if planned.negotiation is not None and planned.negotiation.degraded:
        lost = [f"{each.name} ({each.why})" for each in planned.negotiation.degraded]
        line += f", degraded: {', '.join(lost)}"
    return one_line(line)
