"""What a run has used: tokens, and money with where its figure comes from."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from sessionmgr.model.value import Value


class Usage(Value, frozen=True, kw_only=True, gc=False):
    """Counts of tokens, as deltas or as totals."""

    input: int = 0
    cached_input: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0

    def __add__(self, other: Usage) -> Usage:
        """Count both."""
        return Usage(
            input=self.input + other.input,
            cached_input=self.cached_input + other.cached_input,
            cache_write=self.cache_write + other.cache_write,
            output=self.output + other.output,
            reasoning=self.reasoning + other.reasoning,
        )


class Provenance(StrEnum):
    """Where a figure of cost comes from."""

    REPORTED = "reported"
    """The provider said so."""
    PRICED = "priced"
    """We worked it out from tokens and a price list."""
    UNKNOWN = "unknown"
    """Nobody said."""


# A sum is as good as its worst part.
_WORSE: Final = (Provenance.REPORTED, Provenance.PRICED, Provenance.UNKNOWN)


class Cost(Value, frozen=True, kw_only=True, gc=False):
    """Money; with no `usd`, nobody has said."""

    usd: float | None = None
    provenance: Provenance = Provenance.UNKNOWN

    def __add__(self, other: Cost) -> Cost:
        """Sum both; who says nothing adds nothing."""
        if self.usd is None:
            return other
        if other.usd is None:
            return self
        provenance = max(self.provenance, other.provenance, key=_WORSE.index)
        return Cost(usd=self.usd + other.usd, provenance=provenance)


NOTHING_USED: Final = Usage()
NOTHING_SAID: Final = Cost()
