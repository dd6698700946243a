"""Usage of a run: tokens, and cost with the source of its figure."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from sessionmgr.model.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable


class Usage(Value, frozen=True, kw_only=True, gc=False):
    """Counts of tokens, as deltas or as totals."""

    input: int = 0
    """Input tokens that were not cached."""
    cached_input: int = 0
    """Input tokens read from the cache."""
    cache_write: int = 0
    """Input tokens written to the cache."""
    output: int = 0
    """Output tokens, with those of the reasoning."""
    reasoning: int = 0
    """Output tokens of the reasoning."""

    def __add__(self, other: Usage) -> Usage:
        """Return the sum of both."""
        return Usage(
            input=self.input + other.input,
            cached_input=self.cached_input + other.cached_input,
            cache_write=self.cache_write + other.cache_write,
            output=self.output + other.output,
            reasoning=self.reasoning + other.reasoning,
        )


class Provenance(StrEnum):
    """Source of a figure of cost."""

    REPORTED = "reported"
    """The provider reported it."""
    PRICED = "priced"
    """Computed from tokens and a price list."""
    PARTIAL = "partial"
    """A part of the cost is unknown: the figure is a lower bound."""
    UNKNOWN = "unknown"
    """No source reported a cost."""


# A sum has the provenance of its least certain part.
_WORSE: Final = (Provenance.REPORTED, Provenance.PRICED, Provenance.PARTIAL)


class Cost(Value, frozen=True, kw_only=True, gc=False):
    """An amount of money; without `usd`, the cost is unknown."""

    usd: float | None = None
    """US dollars; null if unknown."""
    provenance: Provenance = Provenance.UNKNOWN
    """Source of the figure."""

    def __add__(self, other: Cost) -> Cost:
        """Add two costs; a known and an unknown one make a partial one."""
        if self.usd is None and other.usd is None:
            return UNKNOWN_COST
        known = [each for each in (self, other) if each.usd is not None]
        provenance = max((each._provenance_or_partial for each in known), key=_WORSE.index)
        return Cost(
            usd=sum(each.usd or 0.0 for each in known),
            provenance=provenance if len(known) == 2 else Provenance.PARTIAL,
        )

    @property
    def _provenance_or_partial(self) -> Provenance:
        """Return a figure's provenance; a figure without one counts as partial."""
        return self.provenance if self.provenance in _WORSE else Provenance.PARTIAL


NOTHING_USED: Final = Usage()
UNKNOWN_COST: Final = Cost()


def total_cost(costs: Iterable[Cost]) -> Cost:
    """Add up costs. The sum of none is unknown, as is `Cost()`: it is not a neutral element."""
    parts = iter(costs)
    total = next(parts, UNKNOWN_COST)
    for each in parts:
        total += each
    return total
