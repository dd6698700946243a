"""Costs of runs that ended before they had reported all of their usage.

The ledger holds what was reported. A run that was cut off may have used more: its sum counts one
more entry without a price, which makes it partial, as in the run's own result.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from sessionmgr.adapter import StartRefused, find_adapter
from sessionmgr.model import (
    NOTHING_USED,
    TERMINAL,
    UNKNOWN_COST,
    UNSUPPORTED,
    Provenance,
    RunStatus,
    decode_run,
)
from sessionmgr.store import CostTotals, UnknownId

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from pathlib import Path

    from sessionmgr.adapter import ProviderAdapter
    from sessionmgr.store import Store, StoredRun

NO_COSTS: Final = CostTotals(**dict.fromkeys(CostTotals.__struct_fields__, 0))


async def read_costs(
    store: Store,
    ids: Collection[str],
    adapters: Mapping[str, type[ProviderAdapter]] | None = None,
    agents: Path | None = None,
) -> dict[str, CostTotals]:
    """Return the sums of sessions, runs or providers' sessions; ids without costs are omitted."""
    gaps = CostGaps(adapters, agents)
    for id in ids:
        if id.startswith("ses_"):
            await gaps.find(store, session_id=id)
        elif id.startswith("run_"):
            with suppress(UnknownId):
                gaps.add([await store.run(id)])
    return gaps.complete(await store.costs(ids), ids)


class CostGaps:
    """The runs, and their sessions, whose costs are not completely known."""

    def __init__(
        self,
        adapters: Mapping[str, type[ProviderAdapter]] | None = None,
        agents: Path | None = None,
    ) -> None:
        self._adapters: Final = adapters
        self._agents: Final = agents
        self._reports: Final[dict[str, bool]] = {}
        """Whether a provider reports costs at all."""
        self._unknown: Final = Counter[str]()
        """Number of runs that have reported nothing, by run and session."""
        self._partial: Final = set[str]()

    async def find(
        self, store: Store, *, session_id: str | None = None, provider: str | None = None
    ) -> None:
        """Find the gaps of stored runs."""
        cursor: int | None = None
        while True:
            page = await store.runs(
                session_id=session_id, provider=provider, statuses=_CUT, cursor=cursor, limit=500
            )
            self.add(page.rows)
            cursor = page.cursor
            if cursor is None:
                return

    def add(self, runs: Iterable[StoredRun]) -> None:
        """Note the runs with a gap."""
        for stored in runs:
            if stored.status not in _CUT:
                continue
            run = decode_run(stored.body)
            ids = (stored.run_id, stored.session_id)
            if run.cost.provenance is Provenance.PARTIAL:
                self._partial.update(ids)
                continue
            is_unknown = (run.usage, run.cost) == (NOTHING_USED, UNKNOWN_COST)
            if is_unknown and run.started_at and self._reports_costs(stored.provider):
                self._unknown.update(ids)

    def complete(self, sums: Mapping[str, CostTotals], ids: Iterable[str]) -> dict[str, CostTotals]:
        """Return the ledger's sums with the gaps of `ids` counted as entries without a price."""
        known = dict(sums)
        for id in ids:
            costs = known.get(id, NO_COSTS)
            more = self._unknown[id] or (id in self._partial and not costs.unpriced)
            if more:
                known[id] = replace(costs, rows=costs.rows + more, unpriced=costs.unpriced + more)
        return known

    def _reports_costs(self, provider: str) -> bool:
        if provider not in self._reports:
            try:
                support = find_adapter(provider, self._adapters, self._agents).capabilities.cost
            except StartRefused:  # its package or its registry file is missing now
                self._reports[provider] = True  # it may report them
            else:
                self._reports[provider] = support is not UNSUPPORTED
        return self._reports[provider]


_CUT: Final = frozenset(each.value for each in TERMINAL - {RunStatus.COMPLETED})
