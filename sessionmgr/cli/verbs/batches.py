"""The verb `batches`: list batches and their progress."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from sessionmgr.cli.batch_records import batch_records
from sessionmgr.cli.errors import StoreEmpty
from sessionmgr.cli.queries import open_existing_store
from sessionmgr.cli.terminal.format import format_age, format_cost
from sessionmgr.cli.terminal.format_path import fit_path, short_path
from sessionmgr.cli.terminal.safe_text import one_line
from sessionmgr.cli.terminal.signals import run_verb
from sessionmgr.cli.terminal.stdout import print_json, print_line, print_note
from sessionmgr.cli.terminal.table import GAP, format_table, terminal_width
from sessionmgr.cli.verbs.sessions import at_least_one
from sessionmgr.model import parse_timestamp

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from sessionmgr.cli.batch_records import BatchRecord

HELP: Final = """\
List the batches whose sessions are in the store, and those in ./runs, last changed first:
how many jobs are done, failed, running and waiting, the cost, and the process that runs
each, if any. STARTED and CHANGED show how long ago the first job started and the last one
ended. sessionmgr status OUT shows one batch.

  sessionmgr batches --running"""

NARROWEST: Final = 14
"""Minimum width of the directory while other columns can be left out."""
_OPTIONAL: Final = ("STARTED", "CANCELLED", "PID", "WAITING")
"""Columns that are left out, in this order, where a line is too narrow."""
_IF_ANY: Final = ("FAILED", "CANCELLED", "RUNNING", "WAITING", "PID", "COST")
"""Columns that are left out if no batch has a value there."""
_TITLES: Final = (
    *("BATCH", "JOBS", "DONE", "FAILED", "CANCELLED", "RUNNING", "WAITING", "COST"),
    *("STARTED", "CHANGED", "PID"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the filters."""
    parser.add_argument(
        "--running", action="store_true", help="list only running batches (default: all)"
    )
    parser.add_argument(
        "--limit",
        type=at_least_one,
        default=20,
        metavar="N",
        help="list at most N batches (default: 20)",
    )


def run(args: argparse.Namespace) -> int:
    """List them and return the exit code."""
    return run_verb(_list, args)


async def _list(args: argparse.Namespace) -> int:
    try:
        async with open_existing_store(args.configuration) as store:
            records = await batch_records(store)
    except StoreEmpty:  # a batch may have begun with another store
        records = await batch_records(None)
    if args.running:
        records = [each for each in records if each.pid is not None]
    records = records[: args.limit]
    if args.json:
        print_json(*records)
    elif not records:
        print_note("No batches match.")
    else:
        for line in batch_table(records, width=terminal_width(), now=time.time()):
            print_line(line)
    return 0


def batch_table(records: Sequence[BatchRecord], *, width: int | None, now: float) -> list[str]:
    """Return the lines of the table."""
    titles = [
        title
        for title in _TITLES
        if title not in _IF_ANY or any(_cell(title, each, now) not in ("", "0") for each in records)
    ]
    longest = max(len(_cell("BATCH", each, now)) for each in records)
    if width is not None:
        for title in _OPTIONAL:
            if width - _width_of_others(titles, records, now) >= min(longest, NARROWEST):
                break
            if title in titles:
                titles.remove(title)
        longest = max(min(width - _width_of_others(titles, records, now), longest), 1)
    rows = [
        [fit_path(_cell(titles[0], each, now), longest)]
        + [_cell(title, each, now) for title in titles[1:]]
        for each in records
    ]
    return format_table(titles, rows, width=width, right=" ".join(titles[1:]))


def _width_of_others(titles: list[str], records: Sequence[BatchRecord], now: float) -> int:
    """Return the width of all columns but the first."""
    return sum(
        len(GAP) + max(len(title), *(len(_cell(title, each, now)) for each in records))
        for title in titles[1:]
    )


def _cell(title: str, record: BatchRecord, now: float) -> str:
    match title:
        case "BATCH":
            return one_line(name_of(record))
        case "JOBS":
            return str(record.jobs)
        case "DONE" | "FAILED" | "CANCELLED" | "RUNNING" | "WAITING":
            return str(getattr(record, title.lower()))
        case "COST":
            return format_cost(record.cost.usd, record.cost.provenance).removesuffix(" (partial)")
        case "PID":
            return "" if record.pid is None else str(record.pid)
        case _:
            at = record.started_at if title == "STARTED" else record.changed_at
            return "" if at is None else format_age(now - parse_timestamp(at))


def name_of(record: BatchRecord) -> str:
    """Return the name of a batch: its directory, or its id if it has none."""
    if record.out is None:
        return record.batch
    return f"{short_path(record.out)}{' (removed)' if record.removed else ''}"
