"""What a manager says of itself, and of what was spent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import msgspec

from sessionmgr.manager.inbox import MOST_ITEMS
from sessionmgr.model import Cost, Provenance, Usage

if TYPE_CHECKING:
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
