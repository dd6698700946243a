"""The verb `costs`: print sums of tokens and costs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from sessionmgr.cli.errors import CommandLineInvalid, StoreEmpty
from sessionmgr.cli.lookup import add_batch_flag, job_of_session, resolve_id
from sessionmgr.cli.parser import one_of
from sessionmgr.cli.queries import decode_session, with_store
from sessionmgr.cli.terminal.format import format_cost, format_count
from sessionmgr.cli.terminal.format_path import home_path, last_part, short_path
from sessionmgr.cli.terminal.format_time import parse_since
from sessionmgr.cli.terminal.stdout import print_json, print_line, print_note
from sessionmgr.cli.terminal.table import (
    format_table,
    natural_width,
    terminal_width,
    without_excess,
)
from sessionmgr.cli.verbs.sessions import SHORT, WITH_DIRECTORY
from sessionmgr.manager import CostGaps, read_costs, usage_and_cost
from sessionmgr.model import Provenance, Usage, decode_run
from sessionmgr.store import CostTotals

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable

    from sessionmgr.store import Store, StoredSession

HELP: Final = """\
Print tokens and costs, summed over the given ids (sessions, runs, jobs) or over all
sessions. Costs are those that providers report; if some usage has no price, or a run was
cut off before it reported its cost, the sum is marked "+ (partial)", and "unpriced"
counts the entries without a price. Narrow terminals leave out token columns; --json has all.

  sessionmgr costs --since 7d --by day
  sessionmgr costs --by batch
  sessionmgr costs ses_3k9w run_7hq2"""

BY: Final = ("session", "run", "job", "batch", "provider", "model", "day")
_OF_RUNS: Final = frozenset({"run", "model"})
AT_ONCE: Final = 500
_NO_BATCH: Final = "(no batch)"
"""The key of sessions that belong to no batch job."""
_OPTIONAL: Final = ("WRITTEN", "CACHED", "BATCH", "DIRECTORY")
"""Columns that are left out, in this order, where a line is too narrow."""


class CostLine(msgspec.Struct, frozen=True, kw_only=True):
    """Usage of one session, run, job, batch, provider, model or day; `key` identifies it."""

    key: str
    usage: Usage
    usd: float | None
    unpriced: int
    provenance: Provenance
    """`partial` if some entries have no price, `unknown` if none has one."""
    job: str | None = None
    """The batch job of a session or a run."""
    batch: str | None = None
    """The directory of the job's batch, or the batch's id if it has none."""
    cwd: str | None = None
    """The directory of a session, a run or a job."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the ids, the filters and the grouping."""
    parser.add_argument(
        "ids", nargs="*", metavar="ID", help="session, run or job (default: all sessions)"
    )
    add_batch_flag(parser)
    parser.add_argument(
        "--by", type=one_of("grouping", BY), help=f"group by {', '.join(BY)} (default: session)"
    )
    parser.add_argument(
        "--since",
        metavar="WHEN",
        help="only sessions started since: 90m, 12h, 7d or a date (default: all)",
    )
    parser.add_argument(
        "-p",
        "--provider",
        dest="of_provider",
        metavar="NAME",
        help="only sessions of this provider (default: all)",
    )


def run(args: argparse.Namespace) -> int:
    """Print the sums and return the exit code."""
    flags = {"--by": args.by, "--since": args.since, "--provider": args.of_provider}
    for flag, given in flags.items():
        if args.ids and given:
            raise CommandLineInvalid(f"costs: {flag} cannot be combined with ids")
    if args.batch is not None and not args.ids:
        raise CommandLineInvalid(f"costs: --batch {args.batch} needs the id of a job in that batch")
    try:
        return with_store(args, _costs)
    except StoreEmpty as nothing:
        if args.ids:
            raise
        print_note(str(nothing))
        return 0


async def _costs(args: argparse.Namespace, store: Store) -> int:
    sums = await (
        _costs_of_ids(store, args.ids, args.batch) if args.ids else _costs_of_all(args, store)
    )
    lines = [_line(of, costs) for of, costs in sums.items()]
    if args.json:
        print_json(*lines)
        return 0
    if not lines:
        print_note("No costs match.")
        return 0
    if len(lines) != 1:
        lines.append(_line(CostGroup("all"), _sum(sums.values())))
    width = terminal_width()
    titles, rows = _columns(lines, args.by, width, is_short=False)
    if width is not None and natural_width([titles, *rows]) > width:
        titles, rows = _columns(lines, args.by, width, is_short=True)
    titles, rows = without_excess(titles, rows, width=width, optional=_OPTIONAL)
    for each in format_table(titles, rows, width=width, right="IN CACHED WRITTEN OUT COST"):
        print_line(each)
    return 0


class CostGroup(NamedTuple):
    """The group of a sum: its key, and the job, the batch and the directory that it belongs to."""

    key: str
    job: str | None = None
    batch: str | None = None
    cwd: str | None = None


async def _costs_of_ids(
    store: Store, ids: list[str], batch: str | None
) -> dict[CostGroup, CostTotals]:
    named = dict.fromkeys(
        [await resolve_id(store, id, "session", "run", batch=batch) for id in ids]
    )
    session_of_run = {id: (await store.run(id)).session_id for kind, id in named if kind == "run"}
    sessions = {id for kind, id in named if kind == "session"}
    whole = [
        id
        for kind, id in named
        if kind == "session"
        or session_of_run[id] not in sessions  # its session already includes the run
    ]
    known = await read_costs(store, whole)
    found: dict[CostGroup, CostTotals] = {}
    for id in whole:
        session = await store.session(session_of_run.get(id, id))
        found[_group_of(session, "session")._replace(key=id)] = known.get(id, _NOTHING)
    return found


async def _costs_of_all(args: argparse.Namespace, store: Store) -> dict[CostGroup, CostTotals]:
    begun = int(parse_since("--since", args.since, time.time()) * 1000) if args.since else None
    by = args.by or "session"
    if by in _OF_RUNS:
        return await _costs_of_runs(store, by, args.of_provider, begun or 0)
    sums: dict[CostGroup, CostTotals] = {}
    gaps = CostGaps()
    await gaps.find(store, provider=args.of_provider)
    cursor: int | None = None
    while True:
        page = await store.sessions(
            provider=args.of_provider, since=begun, limit=AT_ONCE, cursor=cursor
        )
        sessions = [session.session_id for session in page.rows]
        costs = gaps.complete(await store.costs(sessions), sessions)
        for session in page.rows:
            if (found := costs.get(session.session_id)) is not None:
                of = _group_of(session, by)
                sums[of] = _sum((sums.get(of, _NOTHING), found))
        cursor = page.cursor
        if cursor is None:
            return sums


async def _costs_of_runs(
    store: Store, by: str, provider: str | None, begun: int
) -> dict[CostGroup, CostTotals]:
    """Return the usage of runs, or of their models, whose session began since that time."""
    sums: dict[CostGroup, CostTotals] = {}
    sessions: dict[str, StoredSession] = {}
    cursor: int | None = None
    while True:
        page = await store.runs(provider=provider, limit=AT_ONCE, cursor=cursor)
        for id in {run.session_id for run in page.rows} - sessions.keys():
            sessions[id] = await store.session(id)
        runs = [run for run in page.rows if sessions[run.session_id].created >= begun]
        gaps = CostGaps()
        gaps.add(page.rows)
        ids = [run.run_id for run in runs]
        costs = gaps.complete(await store.costs(ids), ids)
        for run in runs:
            if run.run_id not in costs:
                continue
            if by == "model":
                of = CostGroup(decode_run(run.body).model or "unknown")
            else:
                of = _group_of(sessions[run.session_id], "session")._replace(key=run.run_id)
            sums[of] = _sum((sums.get(of, _NOTHING), costs[run.run_id]))
        cursor = page.cursor
        if cursor is None:
            return sums


def _group_of(stored: StoredSession, by: str) -> CostGroup:
    """Return the group that a session's costs belong to."""
    if by == "provider":
        return CostGroup(stored.provider)
    if by == "day":
        return CostGroup(time.strftime("%Y-%m-%d", time.localtime(stored.created / 1000)))
    session = decode_session(stored.body)
    job = job_of_session(session)
    batch = None if job is None else str(job.out) if job.out is not None else job.batch
    if by == "batch":
        return CostGroup(batch or _NO_BATCH)
    if by == "job":
        return (
            CostGroup(_NO_BATCH) if job is None else CostGroup(job.job, job.job, batch, session.cwd)
        )
    return CostGroup(stored.session_id, None if job is None else job.job, batch, session.cwd)


# --- the table -----------------------------------------------------------------------------------


def _columns(
    lines: list[CostLine], by: str | None, width: int | None, *, is_short: bool
) -> tuple[list[str], list[list[str]]]:
    """Return the titles and rows, with job, batch and directory only if they vary."""
    named = lines[:-1] if len(lines) > 1 else lines
    first = by.upper() if by else "OF"
    jobs = by != "job" and any(each.job for each in named)
    batches = by == "job" and len({each.batch for each in named}) > 1
    directories = len({each.cwd for each in named}) > 1
    head: list[tuple[str, Callable[[CostLine], str]]]
    head = [(first, lambda each: _key(each, by, is_short=is_short))]
    if jobs:
        head.append(("JOB", lambda each: each.job or ""))
    if batches:
        head.append(("BATCH", lambda each: short_path(each.batch or "")))
    if directories:
        head.append(("DIRECTORY", lambda each: _directory(each.cwd, width)))
    titles = [title for title, _ in head]
    rows = [[*(cell(each) for _, cell in head), *_amounts(each)] for each in lines]
    return [*titles, "IN", "CACHED", "WRITTEN", "OUT", "COST"], rows


def _key(line: CostLine, by: str | None, *, is_short: bool) -> str:
    if by == "batch":
        return short_path(line.key)
    return line.key[:SHORT] if is_short and line.key.startswith(("ses_", "run_")) else line.key


def _directory(path: str | None, width: int | None) -> str:
    if path is None:
        return ""
    return home_path(path) if width is None or width >= WITH_DIRECTORY else last_part(path)


def _sum(costs: Iterable[CostTotals]) -> CostTotals:
    total = dict.fromkeys(CostTotals.__struct_fields__, 0)
    for each in costs:
        for name in total:
            total[name] += getattr(each, name)
    return CostTotals(**total)


_NOTHING: Final = _sum(())


def _line(of: CostGroup, costs: CostTotals) -> CostLine:
    total = usage_and_cost(costs)
    return CostLine(
        key=of.key,
        usage=total.usage,
        usd=total.cost.usd,
        unpriced=costs.unpriced,
        provenance=total.cost.provenance,
        job=of.job,
        batch=of.batch,
        cwd=of.cwd,
    )


def _amounts(line: CostLine) -> list[str]:
    used = line.usage
    return [
        format_count(used.input),
        format_count(used.cached_input),
        format_count(used.cache_write),
        format_count(used.output),
        format_cost(line.usd, line.provenance) or "-",
    ]
