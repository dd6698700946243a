"""What a manager says of itself, and of what was spent."""

from __future__ import annotations

from collections import Counter
from operator import itemgetter
from typing import TYPE_CHECKING, Final, Literal

import msgspec
import trio

from sessionmgr.manager.inbox import MOST_ITEMS
from sessionmgr.model import Cost, Provenance, Usage

if TYPE_CHECKING:
    from sessionmgr.manager.manager_state import ManagerState
    from sessionmgr.store import CostTotals

_NANO: Final = 10**9


class ProviderStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How a provider stands."""

    state: Literal["up", "down", "idle"]
    """Idle: it was not needed yet, or it was down and may be tried again."""
    running: int = 0
    queued: int = 0
    retry_in: float | None = None
    """In how many seconds it may be tried again, if it is down."""
    why: str | None = None
    """Why it went down, if it did and is not up again."""


class StoreStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How a manager's store stands."""

    state: Literal["open", "closed"]
    """Closed: it is being opened, or opened again."""
    waiting: float = 0.0
    """For how many seconds the slowest of the batches that are under way has been so."""
    why: str | None = None
    """The store's last answer to that batch, if any: that it is full, that another process has
    locked it, ..."""


class InboxStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The statistics of the channels through which events reach the recorders."""

    items: int = 0
    """How many batches and commands wait in all of them,"""
    size: int = 0
    """and how many bytes of events are not stored yet."""
    fullest: int = 0
    """How many items wait in the fullest,"""
    peak: int = 0
    """and how many have waited in one of them at most."""
    limit: int = MOST_ITEMS
    """How many items one of them can hold."""


class ManagerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How a manager stands."""

    open: bool
    """Whether it admits runs."""
    sessions: int
    running: int
    queued: int
    providers: dict[str, ProviderStatus]
    """Those that were asked for."""
    store: StoreStatus
    inboxes: InboxStatus = InboxStatus()


class UsageAndCost(msgspec.Struct, frozen=True, kw_only=True):
    """What a session or a run has used."""

    usage: Usage
    cost: Cost


def usage_and_cost(costs: CostTotals) -> UsageAndCost:
    """Read the store's sums. A sum is partial if a part has no price."""
    priced = costs.rows - costs.unpriced
    provenance = Provenance.PARTIAL if costs.unpriced else Provenance.REPORTED
    return UsageAndCost(
        usage=Usage(
            input=costs.input,
            cached_input=costs.cached_input,
            cache_write=costs.cache_write,
            output=costs.output,
            reasoning=costs.reasoning,
        ),
        cost=Cost(usd=costs.nano_usd / _NANO, provenance=provenance) if priced else Cost(),
    )


def _inbox_status(tables: ManagerState) -> InboxStatus:
    inboxes = [live.inbox for live in tables.live_sessions.values()]
    channels = [inbox.statistics() for inbox in inboxes]
    return InboxStatus(
        items=sum(each.current_buffer_used for each in channels),
        size=sum(inbox.pending for inbox in inboxes),
        fullest=max((each.current_buffer_used for each in channels), default=0),
        peak=max((each.peak_buffer_used for each in channels), default=0),
    )


def manager_status(tables: ManagerState) -> ManagerStatus:
    """Look at a manager's tables, and say how it stands."""
    entries = [entry for entry in tables.runs.values() if not entry.is_over]
    running = Counter(entry.run.provider for entry in entries if entry.has_turn)
    queued = Counter(entry.run.provider for entry in entries if not entry.has_turn)
    now = trio.current_time()
    since = [
        (live.committing_since, live.commit_error)
        for live in tables.live_sessions.values()
        if live.committing_since is not None
    ]
    since += [(begun, live.commit_error) for live, begun in tables.sessions_in_transition.items()]
    since += [(begun, None) for begun in tables.store_calls.values()]
    slowest, error = min(since, key=itemgetter(0), default=(now, None))
    return ManagerStatus(
        open=tables.open,
        sessions=len(tables.live_sessions),
        running=running.total(),
        queued=queued.total(),
        providers={
            name: tree.status(running=running[name], queued=queued[name])
            for name, tree in tables.providers.items()
        },
        inboxes=_inbox_status(tables),
        store=StoreStatus(
            state="open" if tables.has_store else "closed",
            waiting=now - slowest,
            why=None if error is None else str(error),
        ),
    )
