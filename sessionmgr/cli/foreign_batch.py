"""Progress of a batch that another process runs, from its ledger and its sessions' events."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec
import trio
from msgspec.structs import replace

from sessionmgr.batch import (
    ActivityTracker,
    BatchProgress,
    PauseStatus,
    RunningJob,
    ended,
    read_failures,
)
from sessionmgr.cli.batch_records import last_run
from sessionmgr.cli.queries import ALIVE
from sessionmgr.cli.terminal.render_events import end_reason
from sessionmgr.manager import read_provider_pauses
from sessionmgr.model import (
    Cost,
    Usage,
    decode_event,
    decode_run,
    format_timestamp,
    parse_timestamp,
    total_cost,
)

if TYPE_CHECKING:
    from sessionmgr.batch import Attempt, BatchOverview
    from sessionmgr.store import EventRow, Store, StoredRun

FAILED: Final = 10
"""Maximum number of failed jobs to list."""
_TAIL: Final = 50
"""Number of latest events that are read completely."""
_FAR: Final = 5000
"""Number of latest events that are searched for open tool calls and questions."""
_OPENING: Final = (
    *("tool_call_started", "tool_call_completed", "tool_call_failed", "tool_approval_requested"),
    *("tool_approval_granted", "tool_approval_denied"),
)


class FailedJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job that failed, and its last run."""

    job: str
    status: str
    why: str
    run_id: str


class BatchState(msgspec.Struct, frozen=True, kw_only=True):
    """State of a batch as `status` shows it."""

    batch: str
    out: str
    pid: int | None
    holder: str | None
    """A description of the process that runs the batch; None if no process does."""
    started_at: str
    """The start of the latest `batch` command."""
    changed_at: str
    """The time of the last outcome."""
    store: str | None
    """The store of its sessions."""
    interrupted: int
    """The number of waiting jobs whose attempt ended with the process that ran the batch."""
    progress: BatchProgress
    failed_jobs: tuple[FailedJob, ...]
    """The last jobs that failed, newest first."""


class _Running(msgspec.Struct, frozen=True):
    """A running job, and its usage."""

    job: RunningJob
    usage: Usage
    cost: Cost | None


async def batch_state(store: Store | None, overview: BatchOverview) -> BatchState:
    """Return the state of a batch."""
    now = time.time()
    running: list[_Running] = []
    if overview.holder is not None:
        running = [await _running(store, each, overview, now) for each in overview.running]
        if len({each.job.directory for each in running}) == 1:
            running = [replace(each, job=replace(each.job, directory="")) for each in running]
    read = partial(read_failures, overview.out, FAILED)
    failures = await trio.to_thread.run_sync(read, abandon_on_cancel=True)
    return BatchState(
        batch=overview.batch,
        out=str(overview.out),
        pid=overview.pid,
        holder=overview.holder,
        started_at=format_timestamp(overview.started_at),
        changed_at=format_timestamp(overview.changed_at),
        store=None if overview.store is None else str(overview.store),
        interrupted=len(overview.running) if overview.holder is None else 0,
        progress=await _progress(store, overview, running, now),
        failed_jobs=tuple(
            FailedJob(job=each.job, status=each.status.value, why=end_reason(each), run_id=each.id)
            for each in failures
        ),
    )


async def _progress(
    store: Store | None, overview: BatchOverview, running: list[_Running], now: float
) -> BatchProgress:
    done, failed, cancelled = ended(overview.states)
    jobs = sum(overview.states.values())
    is_on = overview.holder is not None
    retrying = overview.states.get("retrying", 0) if is_on else 0
    costs = [] if overview.spent.cost is None else [overview.spent.cost]
    cost = total_cost([*costs, *(each.cost for each in running if each.cost is not None)])
    usages = [overview.spent.usage, *(each.usage for each in running)]
    paused = await read_provider_pauses(store, now) if store is not None and is_on else {}
    return BatchProgress(
        total=jobs,
        done=done,
        failed=failed,
        cancelled=cancelled,
        running=len(running),
        waiting=jobs - done - failed - cancelled - len(running) - retrying,
        retrying=retrying,
        denied=overview.denied,
        tokens=sum(each.input + each.cache_write + each.output for each in usages),
        usd=cost.usd,
        provenance=cost.provenance,
        elapsed=max((now if is_on else overview.changed_at) - overview.started_at, 0.0),
        paused={provider: pause.until - now for provider, pause in paused.items()},
        pauses={
            provider: PauseStatus(
                seconds=pause.until - now,
                until=format_timestamp(pause.until),
                why=pause.why,
            )
            for provider, pause in paused.items()
        },
        jobs=tuple(each.job for each in sorted(running, key=lambda each: -each.job.age)),
    )


# --- running jobs --------------------------------------------------------------------------------


async def _running(
    store: Store | None, attempt: Attempt, overview: BatchOverview, now: float
) -> _Running:
    run = None if store is None else await last_run(store, attempt.session)
    doing = ActivityTracker(overview.started_at)
    usage, cost, began = Usage(), None, None
    if store is not None and run is not None and run.status in ALIVE:
        record = decode_run(run.body)
        usage, began = record.usage, record.started_at
        cost = record.cost if record.cost.usd is not None else None
        if began is not None:
            doing.since = parse_timestamp(began)
        await _see_last(store, run, doing)
    age = 0.0 if began is None else max(now - parse_timestamp(began), 0.0)
    job = RunningJob(
        job=attempt.job.id,
        provider=attempt.job.provider or "",
        attempt=attempt.number,
        age=age,
        doing=doing.text,
        doing_for=0.0 if began is None else max(now - doing.since, 0.0),
        directory=attempt.job.cwd or "",
    )
    return _Running(job, usage, cost)


async def _see_last(store: Store, run: StoredRun, doing: ActivityTracker) -> None:
    """Feed the last events of a run to its activity tracker."""
    if run.first_seq is None or run.last_seq is None:
        return
    begin = run.first_seq - 1
    tail = max(begin, run.last_seq - _TAIL)
    rows: list[EventRow] = []
    after = max(begin, run.last_seq - _FAR)
    if after < tail:
        page = await store.events(
            run.session_id, after=after, until=tail, run_id=run.run_id, types=_OPENING
        )
        rows += page.rows
    rows += (await store.events(run.session_id, after=tail, run_id=run.run_id)).rows
    for row in rows:
        event = decode_event(row.body)
        doing.update([event], parse_timestamp(event.at) if event.at else doing.since)
