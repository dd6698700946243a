"""Checks of an append: the rules that every store applies before it stores a batch.

They compare the append with the stored state of its session and runs, in this order: is the append
consistent in itself; does its recorder hold the newest lease; is its number the next one; may its
runs still change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from sessionmgr.model import TERMINAL, TERMINAL_TYPES, RunStatus
from sessionmgr.store.errors import AlreadyEnded, AppendInvalid, NumberGap, NumberTaken, StaleFence

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sessionmgr.store.rows import Append, Lease, LeaseOwner

DELTAS: Final = ("message_streamed", "reasoning_streamed", "tool_call_updated")
"""Types of events that `prune` may drop: a later event contains the whole text."""

STATUSES: Final = frozenset(map(str, RunStatus))
_ENDED: Final = frozenset(map(str, TERMINAL))
_ENDING: Final[dict[str, str]] = {each: each.removeprefix("run_") for each in TERMINAL_TYPES}


class KnownRun(Struct, frozen=True, gc=False):
    """Stored state of a run, as far as the checks need it."""

    session_id: str
    status: str


def batch_identity(fence: int, rows: int, batch: str) -> str:
    """Return the identity that distinguishes this batch from any other with its number."""
    return f"{fence}:{rows}:{batch}"


def terminal_events(append: Append) -> dict[str, int]:
    """Return the terminal events' numbers by run.

    Raises:
        AppendInvalid: The append is inconsistent.
        AlreadyEnded: It ends a run twice.
    """
    if not append.rows:
        raise AppendInvalid(append.session_id, "it contains no events")
    if append.first < 1:
        raise AppendInvalid(append.session_id, f"numbers start at 1, not at {append.first}")
    wanted = range(append.first, append.first + len(append.rows))
    if [row.seq for row in append.rows] != list(wanted):
        seq, number = next(
            (row.seq, n) for row, n in zip(append.rows, wanted, strict=True) if row.seq != n
        )
        why = f"its events are not numbered consecutively: {seq} instead of {number}"
        raise AppendInvalid(append.session_id, why)
    ends: dict[str, int] = {}
    # Most batches end no run, and then their rows need not be examined one by one.
    if not _ENDING.keys().isdisjoint({row.type for row in append.rows}):
        _find_terminals(append, ends)
    _check_statuses(append, ends)
    return ends


def _find_terminals(append: Append, ends: dict[str, int]) -> None:
    for row in append.rows:
        if row.type in _ENDING:
            if row.run_id is None:
                raise AppendInvalid(append.session_id, f"its event {row.type} names no run")
            if row.run_id in ends:
                raise AlreadyEnded(append.session_id, row.run_id, "in the same batch")
            ends[row.run_id] = row.seq


def _check_statuses(append: Append, ends: Mapping[str, int]) -> None:
    statuses = {run.run_id: run.status for run in append.runs}
    if len(statuses) != len(append.runs):
        raise AppendInvalid(append.session_id, "it contains two records of one run")
    for run_id, status in statuses.items():
        if status not in STATUSES:
            raise AppendInvalid(append.session_id, f"run {run_id}: unknown status {status!r}")
    for run_id, seq in ends.items():
        wanted = _ENDING[append.rows[seq - append.first].type]
        if statuses.get(run_id) != wanted:
            why = f"run {run_id} ends, but its record does not have the status {wanted}"
            raise AppendInvalid(append.session_id, why)


def check_fence(append: Append, fence: int) -> None:
    """Refuse an append of a recorder that has a successor.

    Raises:
        StaleFence: The session's fence is higher.
    """
    if append.fence < fence:
        raise StaleFence(append.session_id, append.fence, fence)


def is_duplicate(append: Append, last: int, stored: str | None) -> bool:
    """Return whether the batch is stored already; `stored` is the batch that begins at its number.

    Raises:
        NumberTaken: Another batch is stored there.
        NumberGap: Numbers before it are missing.
    """
    if append.first == last + 1:
        return False
    if append.first > last:
        raise NumberGap(append.session_id, append.first, last)
    if stored != batch_identity(append.fence, len(append.rows), append.batch):
        raise NumberTaken(append.session_id, append.first, last)
    return True


def check_runs(append: Append, ends: Mapping[str, int], stored: Mapping[str, KnownRun]) -> None:
    """Refuse what contradicts the stored state of the runs that the append names.

    Raises:
        AlreadyEnded: A run that has ended would end again, or change its status.
        AppendInvalid: A run is another session's, unknown, or ended without its event.
    """
    for run_id, known_run in stored.items():
        if known_run.session_id != append.session_id:
            why = f"run {run_id} belongs to session {known_run.session_id}"
            raise AppendInvalid(append.session_id, why)
    known = {*stored, *(run.run_id for run in append.runs)}
    for run_id in append_runs(append) - known:
        raise AppendInvalid(append.session_id, f"it contains no record of its new run {run_id}")
    for run_id in ends:
        if run_id in stored and stored[run_id].status in _ENDED:
            raise AlreadyEnded(append.session_id, run_id, stored[run_id].status)
    for run in append.runs:
        before = stored[run.run_id].status if run.run_id in stored else ""
        if before in _ENDED:
            if run.status != before:
                raise AlreadyEnded(append.session_id, run.run_id, before)
        elif run.status in _ENDED and run.run_id not in ends:
            why = f"run {run.run_id} is {run.status}, but its terminal event is missing"
            raise AppendInvalid(append.session_id, why)


def append_runs(append: Append) -> set[str]:
    """Return the runs whose events, records or costs the append holds."""
    rows = (append.rows, append.runs, append.ledger)
    named = {row.run_id for some in rows for row in some}
    return {each for each in named if each is not None}


def is_lease_held(
    lease: Lease, now: int, gone: Callable[[LeaseOwner], bool], alive: Callable[[LeaseOwner], bool]
) -> bool:
    """Return whether a lease still excludes others.

    A lease whose owner is provably gone does not. An expired one does only while its owner is
    provably alive: a suspended machine, a stopped process and a clock step end no lease.
    """
    if lease.expires > now:
        return not gone(lease.owner)
    return alive(lease.owner)
