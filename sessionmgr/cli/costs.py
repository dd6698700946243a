"""The verb `costs`: what was used, and what it cost as far as anybody says."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.cli.amount import count, money
from sessionmgr.cli.lookup import add_batch_flag, find
from sessionmgr.cli.output import note, say, say_json
from sessionmgr.cli.parser import one_of
from sessionmgr.cli.stored import with_store
from sessionmgr.cli.table import room, table
from sessionmgr.cli.when import since
from sessionmgr.errors import CommandLineInvalid, NothingStored
from sessionmgr.manager.cost_gaps import CostGaps, costs_of
from sessionmgr.manager.status import spent
from sessionmgr.model import Provenance, Usage
from sessionmgr.store import Costs

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from sessionmgr.store import Store, StoredSession

HELP: Final = """\
Print tokens and money, summed over the ids that are given (sessions, runs), or over
all sessions. A cost is what was reported; where some of it has no price, or a run was
cut off before it reported its cost, the sum is marked "+ (partial)", and "unpriced"
counts the entries without one.

  sessionmgr costs --since 7d --by day
  sessionmgr costs ses_3k9w run_7hq2"""

BY: Final = ("session", "run", "provider", "day")
AT_ONCE: Final = 500


class CostLine(msgspec.Struct, frozen=True, kw_only=True):
    """What one session, run, provider or day has used; `key` says which."""

    key: str
    usage: Usage
    usd: float | None
    unpriced: int
    provenance: Provenance
    """`partial` if some entries have no price, `unknown` if none has one."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take ids, or which sessions, and how to sum them."""
    parser.add_argument("ids", nargs="*", metavar="ID", help="a session, a run or a job")
    add_batch_flag(parser)
    parser.add_argument("--by", type=one_of("way to sum", BY), help=f"by {', '.join(BY)}")
    parser.add_argument("--since", metavar="WHEN", help="begun since: 90m, 12h, 7d or a date")
    parser.add_argument(
        "-p", "--provider", dest="of_provider", metavar="NAME", help="with this provider only"
    )


def run(args: argparse.Namespace) -> int:
    """Print them and return the exit code."""
    flags = {"--by": args.by, "--since": args.since, "--provider": args.of_provider}
    for flag, given in flags.items():
        if args.ids and given:
            raise CommandLineInvalid(f"costs: {flag} is for all sessions, and not with ids")
    if args.batch is not None and not args.ids:
        raise CommandLineInvalid(f"costs: --batch {args.batch} needs the id of a job in that batch")
    try:
        return with_store(args, _costs)
    except NothingStored as nothing:
        if args.ids:
            raise
        note(str(nothing))
        return 0


async def _costs(args: argparse.Namespace, store: Store) -> int:
    sums = await (_of_ids(store, args.ids, args.batch) if args.ids else _of_all(args, store))
    lines = [_line(key, costs) for key, costs in sums.items()]
    if args.json:
        say_json(*lines)
        return 0
    if len(lines) != 1:
        lines.append(_line("all", _sum(sums.values())))
    titles = [args.by.upper() if args.by else "OF", "IN", "CACHED", "WRITTEN", "OUT", "COST"]
    rows = [_row(line) for line in lines]
    for each in table(titles, rows, width=room(), right="IN CACHED WRITTEN OUT COST"):
        say(each)
    return 0


async def _of_ids(store: Store, ids: list[str], batch: str | None) -> dict[str, Costs]:
    named = dict.fromkeys([await find(store, id, "session", "run", batch=batch) for id in ids])
    sessions = {id for kind, id in named if kind == "session"}
    whole = [
        id
        for kind, id in named
        if kind == "session" or (await store.run(id)).session_id not in sessions  # counted there
    ]
    known = await costs_of(store, whole)
    return {id: known.get(id, _NOTHING) for id in whole}


async def _of_all(args: argparse.Namespace, store: Store) -> dict[str, Costs]:
    begun = int(since("--since", args.since, time.time()) * 1000) if args.since else None
    if args.by == "run":
        return await _of_runs(store, args.of_provider, begun or 0)
    sums: dict[str, Costs] = {}
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
                key = _key(session, args.by)
                sums[key] = _sum((sums.get(key, _NOTHING), found))
        cursor = page.cursor
        if cursor is None:
            return sums


async def _of_runs(store: Store, provider: str | None, begun: int) -> dict[str, Costs]:
    """Return the usage of each run whose session began since that time."""
    sums: dict[str, Costs] = {}
    created: dict[str, int] = {}
    cursor: int | None = None
    while True:
        page = await store.runs(provider=provider, limit=AT_ONCE, cursor=cursor)
        for id in {run.session_id for run in page.rows} - created.keys():
            created[id] = (await store.session(id)).created
        ids = [run.run_id for run in page.rows if created[run.session_id] >= begun]
        gaps = CostGaps()
        gaps.add(page.rows)
        costs = gaps.complete(await store.costs(ids), ids)
        sums.update({id: costs[id] for id in ids if id in costs})
        cursor = page.cursor
        if cursor is None:
            return sums


def _key(session: StoredSession, by: str | None) -> str:
    match by:
        case "provider":
            return session.provider
        case "day":
            return time.strftime("%Y-%m-%d", time.localtime(session.created / 1000))
        case _:
            return session.session_id


def _sum(costs: Iterable[Costs]) -> Costs:
    total = dict.fromkeys(Costs.__struct_fields__, 0)
    for each in costs:
        for name in total:
            total[name] += getattr(each, name)
    return Costs(**total)


_NOTHING: Final = _sum(())


def _line(key: str, costs: Costs) -> CostLine:
    told = spent(costs)
    return CostLine(
        key=key,
        usage=told.usage,
        usd=told.cost.usd,
        unpriced=costs.unpriced,
        provenance=told.cost.provenance,
    )


def _row(line: CostLine) -> list[str]:
    used = line.usage
    return [
        line.key,
        count(used.input),
        count(used.cached_input),
        count(used.cache_write),
        count(used.output),
        money(line.usd, line.provenance) or "-",
    ]
