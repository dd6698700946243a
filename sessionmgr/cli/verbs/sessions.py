"""The verb `sessions`: list the stored sessions, newest first."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.cli.errors import StoreEmpty
from sessionmgr.cli.parser import one_of
from sessionmgr.cli.queries import (
    ALIVE,
    ASKS,
    ORPHANED,
    decode_session,
    first_prompt,
    live_leases,
    observed_status,
    waits_for_answer,
    with_store,
)
from sessionmgr.cli.terminal.format import format_cost, format_duration
from sessionmgr.cli.terminal.format_path import home_path, last_part
from sessionmgr.cli.terminal.format_time import format_clock, parse_since
from sessionmgr.cli.terminal.safe_text import truncate
from sessionmgr.cli.terminal.stdout import print_json, print_line, print_note
from sessionmgr.cli.terminal.table import WIDEST, format_table, terminal_width
from sessionmgr.manager import UsageAndCost, read_costs, usage_and_cost
from sessionmgr.model import Cost, Json, RunStatus, Usage, format_timestamp, parse_timestamp

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sessionmgr.store import Lease, Store, StoredRun, StoredSession

HELP: Final = """\
List sessions, newest first, with the batch job that each belongs to, its provider, the
status of its last run, its cost and its first prompt. A run with the status asks waits for
an answer (see sessionmgr questions); the process of an orphaned run is gone. An id may be
shortened while it is unambiguous; a job's id stands for its last session.

  sessionmgr sessions --status failed --since 12h
  sessionmgr sessions --provider shell --json"""

STATUSES: Final = (*(status.value for status in RunStatus), ASKS, ORPHANED)
SHORT: Final = 12
"""Length of ids in tables: 40 random bits."""
WITH_DIRECTORY: Final = 120
"""Minimum width of a terminal for the whole path of the directory."""
_NARROW: Final = 60
"""Minimum width of a terminal for the last part of that path."""
_LAST_PART: Final = 16
"""Width of the column for the last part of the path."""


class SessionLine(msgspec.Struct, frozen=True, kw_only=True):
    """A session in the list; `status` is that of its last run."""

    id: str
    provider: str
    state: str
    status: str | None
    run_id: str | None
    created_at: str
    ended_at: str | None
    duration: float | None
    model: str | None
    cwd: str
    prompt: str | None
    usage: Usage
    cost: Cost
    last_seq: int
    metadata: dict[str, Json]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the filters."""
    parser.add_argument(
        "-p",
        "--provider",
        dest="of_provider",
        metavar="NAME",
        help="only sessions of this provider (default: all)",
    )
    parser.add_argument(
        "--status",
        type=one_of("status", STATUSES),
        metavar="STATUS",
        help=f"only sessions whose last run has this status: {', '.join(STATUSES)} (default: all)",
    )
    parser.add_argument(
        "--since",
        metavar="WHEN",
        help="only sessions started since: 90m, 12h, 7d or a date (default: all)",
    )
    parser.add_argument(
        "--limit",
        type=at_least_one,
        default=50,
        metavar="N",
        help="list at most N sessions (default: 50)",
    )


def at_least_one(text: str) -> int:
    """Parse a number of 1 or more."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number, 1 or more, got {text!r}")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """List the sessions and return the exit code."""
    try:
        return with_store(args, _list)
    except StoreEmpty as nothing:
        print_note(str(nothing))
        return 0


async def _list(args: argparse.Namespace, store: Store) -> int:
    now = time.time()
    begun = parse_since("--since", args.since, now) * 1000 if args.since else 0
    lister = SessionLister(store, await live_leases(store), begun, args.of_provider)
    lines = await (
        lister.by_status(args.status, args.limit) if args.status else lister.all(args.limit)
    )
    if args.json:
        print_json(*lines)
    elif lines:
        columns = [_column(title, lines, now) for title in _titles(lines)]
        titles = [title for title, _ in columns]
        rows = list(zip(*(cells for _, cells in columns), strict=True))
        for each in format_table(titles, rows, width=terminal_width(), right="TOOK COST"):
            print_line(each)
    else:
        print_note("No sessions match.")
    return 0


def _titles(lines: Sequence[SessionLine]) -> list[str]:
    """Return the columns: JOB if there are jobs, DIRECTORY if it fits or if there are several."""
    titles = ["SESSION", "PROVIDER", "STATUS", "STARTED", "TOOK", "COST", "PROMPT"]
    has_jobs = any(_job(line) for line in lines)
    has_several = len({line.cwd for line in lines}) > 1
    is_narrow = (terminal_width() or WITH_DIRECTORY) < _NARROW
    if _is_wide() or (has_several and not is_narrow):
        titles.insert(-1, "DIRECTORY")
    if has_jobs:
        titles.insert(1, "JOB")
        if is_narrow or (has_several and not _is_wide()):
            titles.remove("PROMPT")  # the job identifies the session better
    return titles


def _is_wide() -> bool:
    width = terminal_width()
    return width is None or width >= WITH_DIRECTORY


def _column(title: str, lines: Sequence[SessionLine], now: float) -> tuple[str, list[str]]:
    return title, [_cell(title, line, now) for line in lines]


def _cell(title: str, line: SessionLine, now: float) -> str:
    match title:
        case "SESSION":
            return line.id[:SHORT]
        case "JOB":
            return _job(line)
        case "PROVIDER":
            return line.provider
        case "STATUS":
            return line.status or line.state
        case "STARTED":
            return format_clock(parse_timestamp(line.created_at), now)
        case "TOOK":
            return "" if line.duration is None else format_duration(line.duration)
        case "COST":
            return format_cost(line.cost.usd, line.cost.provenance)
        case "DIRECTORY":
            return home_path(line.cwd) if _is_wide() else truncate(last_part(line.cwd), _LAST_PART)
        case _:
            return (line.prompt or "")[:WIDEST]


def _job(line: SessionLine) -> str:
    job = line.metadata.get("job")
    return job if isinstance(job, str) and "batch" in line.metadata else ""


class SessionLister:
    """Finds sessions and builds their lines."""

    def __init__(
        self, store: Store, held: Mapping[str, Lease], begun: float, provider: str | None
    ) -> None:
        self._store: Final = store
        self._held: Final = held
        self._begun: Final = int(begun)
        self._provider: Final = provider

    async def all(self, limit: int) -> list[SessionLine]:
        """Return the newest sessions."""
        page = await self._store.sessions(provider=self._provider, since=self._begun, limit=limit)
        return [await self._line(session, await self._last_run(session)) for session in page.rows]

    async def by_status(self, status: str, limit: int) -> list[SessionLine]:
        """Return the newest sessions whose last run has this status."""
        statuses = ALIVE if status in {ORPHANED, ASKS} else {status}
        lines: dict[str, SessionLine] = {}
        cursor: int | None = None
        while True:
            page = await self._store.runs(statuses=statuses, provider=self._provider, cursor=cursor)
            for run in page.rows:
                if run.session_id not in lines:
                    line = await self._if_last(run)
                    if line is not None and line.status == status:
                        lines[run.session_id] = line
                if len(lines) == limit:
                    return list(lines.values())
            cursor = page.cursor
            if cursor is None:
                return list(lines.values())

    async def _if_last(self, run: StoredRun) -> SessionLine | None:
        """Return the line of the run's session, if the run is its last one and recent enough."""
        session = await self._store.session(run.session_id)
        last = await self._last_run(session)
        if last is None or last.run_id != run.run_id or session.created < self._begun:
            return None
        return await self._line(session, last)

    async def _last_run(self, session: StoredSession) -> StoredRun | None:
        page = await self._store.runs(session_id=session.session_id, limit=1)
        return page.rows[0] if page.rows else None

    async def _line(self, stored: StoredSession, last: StoredRun | None) -> SessionLine:
        session = decode_session(stored.body)
        id = stored.session_id
        is_held = id in self._held
        costs = (await read_costs(self._store, [id])).get(id)
        used = (
            usage_and_cost(costs) if costs is not None else UsageAndCost(usage=Usage(), cost=Cost())
        )
        ended = None if last is None or last.ended is None else last.ended / 1000
        return SessionLine(
            id=id,
            provider=stored.provider,
            state=stored.state,
            status=None if last is None else _status(last, held=is_held),
            run_id=None if last is None else last.run_id,
            created_at=format_timestamp(stored.created / 1000),
            ended_at=None if ended is None else format_timestamp(ended),
            duration=_format_elapsed(stored.created / 1000, ended, is_on=is_held),
            model=session.model,
            cwd=session.cwd,
            prompt=await first_prompt(self._store, id),
            usage=used.usage,
            cost=used.cost,
            last_seq=stored.last_seq,
            metadata=session.metadata,
        )


def _status(last: StoredRun, *, held: bool) -> str:
    return observed_status(last.status, held=held, asks=waits_for_answer(last))


def _format_elapsed(started: float, ended: float | None, *, is_on: bool) -> float | None:
    if ended is None:
        return round(time.time() - started, 3) if is_on else None
    return round(ended - started, 3)
