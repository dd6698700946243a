"""Total usage of attempts; an attempt that never started costs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.model import Cost, Provenance, Usage, total_cost

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sessionmgr.model import RunResult


class UsageTotals(msgspec.Struct, frozen=True, kw_only=True):
    """The number of attempts, and their usage."""

    attempts: int
    usage: Usage
    cost: Cost | None
    """None if no attempt has started."""


def may_have_cost(result: RunResult) -> bool:
    """Return whether an attempt may have cost something."""
    return result.started_at is not None or result.usage != Usage() or result.cost != Cost()


def sum_usage(rows: Iterable[tuple[bytes | None, float | None, str | None]]) -> UsageTotals:
    """Add up the ledger's rows of usage, usd and provenance."""
    attempts, usage, costs = 0, Usage(), list[Cost]()
    for used, usd, provenance in rows:
        attempts += 1
        if used is not None:
            usage += _usage.decode(used)
        if provenance is not None:
            costs.append(Cost(usd=usd, provenance=Provenance(provenance)))
    return UsageTotals(attempts=attempts, usage=usage, cost=total_cost(costs) if costs else None)


_usage: Final = msgspec.json.Decoder(Usage)
