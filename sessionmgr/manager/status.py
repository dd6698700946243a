"""The status of a manager, its providers and its store, and the usage of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import msgspec

from sessionmgr.manager.inbox import MOST_ITEMS
from sessionmgr.model import Cost, Provenance, Usage

if TYPE_CHECKING:
    from sessionmgr.store import CostTotals

_NANO: Final = 10**9


class ProviderStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The status of a provider."""

    state: Literal["up", "down", "idle"]
    """Idle: it was not needed yet, or it was down and may be started again."""
    running: int = 0
    queued: int = 0
    retry_in: float | None = None
    """Seconds until it may be started again, if it is down."""
    why: str | None = None
    """The reason why it is down or was down last."""


class StoreStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The status of a manager's store."""

    state: Literal["open", "closed"]
    """Closed: it is being opened, or opened again."""
    waiting: float = 0.0
    """Seconds for which the slowest pending batch has been waiting."""
    why: str | None = None
    """The store's last error for that batch, if any: for example that the disk is full, or
    that another process has locked the file."""


class InboxStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The statistics of the channels through which events reach the recorders."""

    items: int = 0
    """The number of batches and commands that wait in all channels."""
    size: int = 0
    """The size of the events that are not stored yet, in bytes."""
    fullest: int = 0
    """The number of items in the fullest channel."""
    peak: int = 0
    """The largest number of items that one channel has held."""
    limit: int = MOST_ITEMS
    """The capacity of one channel."""


class ManagerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The status of a manager."""

    open: bool
    """Whether it admits runs."""
    sessions: int
    running: int
    queued: int
    providers: dict[str, ProviderStatus]
    """The providers that were used."""
    store: StoreStatus
    inboxes: InboxStatus = InboxStatus()


class UsageAndCost(msgspec.Struct, frozen=True, kw_only=True):
    """The usage and cost of a session, a run or a provider session."""

    usage: Usage
    cost: Cost


def usage_and_cost(costs: CostTotals) -> UsageAndCost:
    """Convert the store's sums. A cost is partial if a part of it has no price."""
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
