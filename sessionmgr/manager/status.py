"""What a manager says of itself, and of what was spent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.model import Cost, Provenance, Usage

if TYPE_CHECKING:
    from sessionmgr.store.row import Costs

_NANO: Final = 10**9


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """How a manager stands."""

    open: bool
    """Whether it admits runs."""
    sessions: int
    running: int
    queued: int
    providers: dict[str, bool]
    """Those that were used, and whether they are up."""


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """What a session or a run has used."""

    usage: Usage
    cost: Cost


def spent(costs: Costs) -> Spent:
    """Read the store's sums. Where a part has no price, the sum is what is known of it."""
    priced = costs.rows - costs.unpriced
    return Spent(
        usage=Usage(
            input=costs.input,
            cached_input=costs.cached_input,
            cache_write=costs.cache_write,
            output=costs.output,
            reasoning=costs.reasoning,
        ),
        cost=Cost(usd=costs.nano_usd / _NANO, provenance=Provenance.REPORTED) if priced else Cost(),
    )
