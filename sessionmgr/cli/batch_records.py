"""Records of batches, read from the store and from their directories."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import trio

from sessionmgr.batch import BatchOverview, LedgerUnusable, ended, read_batch
from sessionmgr.cli.lookup import PAGE, job_of_session
from sessionmgr.cli.queries import ALIVE, decode_session, live_leases
from sessionmgr.cli.terminal.stdout import print_note
from sessionmgr.manager import read_costs, usage_and_cost
from sessionmgr.model import Cost, decode_run, format_timestamp, total_cost

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sessionmgr.batch import Attempt
    from sessionmgr.store import Lease, Store, StoredRun

RUNS: Final = Path("runs")
"""The directory that contains batches without `--out`."""
_SIGN: Final = b'"batch"'


class BatchRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A batch as lists show it. Each job is counted once in the fields from `done` on."""

    batch: str
    out: str | None
    """The directory of the batch; None: it has none."""
    removed: bool
    """Whether the directory is gone; the counts are then those of the sessions in the store."""
    jobs: int
    done: int
    failed: int
    cancelled: int
    running: int
    waiting: int
    """Includes jobs that wait for another attempt and jobs that were interrupted."""
    cost: Cost
    started_at: str | None
    changed_at: str | None
    """The time of the last outcome."""
    pid: int | None
    """The process that runs the batch; None if no process does."""


class _Sessions(msgspec.Struct):
    """The sessions of a batch in the store, newest first."""

    batch: str
    out: Path | None = None
    ids: list[str] = msgspec.field(default_factory=list[str])
    jobs: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    """The last session of each job."""
    first: int = 0
    last: int = 0


async def batch_records(store: Store | None, runs: Path = RUNS) -> list[BatchRecord]:
    """Return the batches that the store has and those in a directory, last changed first."""
    stored = {} if store is None else await _stored_batches(store)
    places = [each.out for each in stored.values() if each.out is not None]
    overviews = await _overviews([*places, *await trio.to_thread.run_sync(_directories, runs)])
    records: list[BatchRecord] = []
    for batch, overview in overviews.items():
        records.append(await _of_directory(store, overview, stored.pop(batch, None)))
    if store is not None:
        held = await live_leases(store)
        records += [await _of_sessions(store, each, held) for each in stored.values()]
    return sorted(records, key=lambda each: each.changed_at or "", reverse=True)


def _directories(runs: Path) -> list[Path]:
    try:
        return sorted(each for each in runs.iterdir() if each.is_dir())
    except OSError:
        return []


async def _overviews(places: Iterable[Path]) -> dict[str, BatchOverview]:
    """Return the batches in these directories by id."""
    found: dict[str, BatchOverview] = {}
    for place in dict.fromkeys(each.absolute() for each in places):
        try:
            overview = await overview_of(place)
        except LedgerUnusable as error:
            print_note(f"warning: {error}")
            continue
        if overview is not None:
            found[overview.batch] = overview
    return found


async def overview_of(out: Path) -> BatchOverview | None:
    """Read the batch in a directory; None if it contains none.

    Raises:
        LedgerUnusable: Its ledger is unreadable.
    """
    return await trio.to_thread.run_sync(partial(read_batch, out), abandon_on_cancel=True)


# --- from the store ------------------------------------------------------------------------------


async def _stored_batches(store: Store) -> dict[str, _Sessions]:
    """Return the sessions of all batches by batch id."""
    found: dict[str, _Sessions] = {}
    cursor: int | None = None
    while True:
        page = await store.sessions(limit=PAGE, cursor=cursor)
        for stored in page.rows:
            if _SIGN not in stored.body:  # decoding every record would take ten times as long
                continue
            of = job_of_session(decode_session(stored.body))
            if of is None:
                continue
            batch = found.setdefault(of.batch, _Sessions(of.batch, out=of.out))
            batch.ids.append(stored.session_id)
            batch.jobs.setdefault(of.job, stored.session_id)
            batch.first, batch.last = stored.created, batch.last or stored.created
        cursor = page.cursor
        if cursor is None:
            return found


async def last_run(store: Store, session_id: str) -> StoredRun | None:
    """Return a session's last run, if any."""
    page = await store.runs(session_id=session_id, limit=1)
    return page.rows[0] if page.rows else None


async def _of_sessions(store: Store, batch: _Sessions, held: Mapping[str, Lease]) -> BatchRecord:
    """Return the record of a batch whose directory is gone."""
    counts = Counter[str]()
    changed = batch.last
    for session_id in batch.jobs.values():
        run = await last_run(store, session_id)
        changed = max(changed, (run.ended or 0) if run is not None else 0)
        counts[_standing(run, is_held=session_id in held)] += 1
    costs = await read_costs(store, batch.ids)
    owners = [held[id].owner.pid for id in batch.ids if id in held]
    return BatchRecord(
        batch=batch.batch,
        out=None if batch.out is None else str(batch.out),
        removed=batch.out is not None,
        jobs=len(batch.jobs),
        **{name: counts[name] for name in ("done", "failed", "cancelled", "running", "waiting")},
        cost=total_cost(usage_and_cost(each).cost for each in costs.values()),
        started_at=format_timestamp(batch.first / 1000),
        changed_at=format_timestamp(changed / 1000),
        pid=owners[0] if owners else None,
    )


def _standing(run: StoredRun | None, *, is_held: bool) -> str:
    if run is None:
        return "waiting"
    if run.status in ALIVE:
        return "running" if is_held else "waiting"
    return {"completed": "done", "cancelled": "cancelled"}.get(run.status, "failed")


# --- from the directory --------------------------------------------------------------------------


async def _of_directory(
    store: Store | None, overview: BatchOverview, sessions: _Sessions | None
) -> BatchRecord:
    costs = [] if overview.spent.cost is None else [overview.spent.cost]
    if store is not None and overview.holder is not None:
        costs += [cost for each in overview.running if (cost := await _cost_so_far(store, each))]
    return record_of(overview, total_cost(costs), None if sessions is None else sessions.first)


def record_of(overview: BatchOverview, cost: Cost, first: int | None = None) -> BatchRecord:
    """Return the record of a batch; `first` is when its first session was created, in ms."""
    done, failed, cancelled = ended(overview.states)
    jobs = sum(overview.states.values())
    running = len(overview.running) if overview.holder is not None else 0
    return BatchRecord(
        batch=overview.batch,
        out=str(overview.out),
        removed=False,
        jobs=jobs,
        done=done,
        failed=failed,
        cancelled=cancelled,
        running=running,
        waiting=jobs - done - failed - cancelled - running,
        cost=cost,
        started_at=format_timestamp(overview.started_at if first is None else first / 1000),
        changed_at=format_timestamp(overview.changed_at),
        pid=overview.pid,
    )


async def _cost_so_far(store: Store, attempt: Attempt) -> Cost | None:
    """Return the cost of a running attempt."""
    run = await last_run(store, attempt.session)
    if run is None or run.status not in ALIVE:
        return None
    cost = decode_run(run.body).cost
    return cost if cost.usd is not None else None
