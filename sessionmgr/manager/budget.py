"""Budgets of sessions and managers: each covers all runs under it, and all of them apply.

They count what providers report. A session's runs follow each other, so each gets the remainder
when it starts. A manager's runs are concurrent: when its budget is used up, all of them end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sessionmgr.adapter import UNLIMITED_BUDGET, Budget

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sessionmgr.model import Run, Usage
    from sessionmgr.store import CostTotals

_NANO: Final = 10**9


class UsageAccount:
    """The usage of the runs of one session or one manager."""

    __slots__ = ("_tokens", "_usd")

    def __init__(self) -> None:
        self._usd = 0.0
        self._tokens = 0

    def open(self, costs: CostTotals) -> None:
        """Start with the recorded usage."""
        self._usd = costs.nano_usd / _NANO
        self._tokens = costs.input + costs.cache_write + costs.output

    def add(self, before: Run, after: Run) -> None:
        """Add a run's usage between two states of its record."""
        self._usd += (after.cost.usd or 0.0) - (before.cost.usd or 0.0)
        self._tokens += counted_tokens(after.usage) - counted_tokens(before.usage)

    def remaining(self, budget: Budget) -> Budget:
        """Return the remainder of a budget; 0 if it is used up."""
        if budget.usd is None and budget.tokens is None:
            return UNLIMITED_BUDGET
        return Budget(
            usd=None if budget.usd is None else max(0.0, budget.usd - self._usd),
            tokens=None if budget.tokens is None else max(0, budget.tokens - self._tokens),
        )

    def spent_reason(self, budget: Budget, scope: str) -> str | None:
        """Return a message if a budget is used up."""
        if budget.usd is None and budget.tokens is None:
            return None
        left = self.remaining(budget)
        if left.usd == 0:
            return f"the {scope}'s budget is used up: ${self._usd:.4f} of ${budget.usd:g}"
        if left.tokens == 0:
            return f"the {scope}'s budget is used up: {self._tokens} of {budget.tokens} tokens"
        return None


def counted_tokens(usage: Usage) -> int:
    """Return the tokens that a budget counts."""
    return usage.input + usage.cache_write + usage.output


def minimum_budget(budgets: Iterable[Budget]) -> Budget:
    """Return the minimum of each limit."""
    found = [each for each in budgets if each.usd is not None or each.tokens is not None]
    if not found:
        return UNLIMITED_BUDGET
    return Budget(
        usd=min((each.usd for each in found if each.usd is not None), default=None),
        tokens=min((each.tokens for each in found if each.tokens is not None), default=None),
    )
