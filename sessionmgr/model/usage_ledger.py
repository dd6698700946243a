"""The ledger of usage: whatever providers report, deltas are booked, each thing once.

Some providers report what a call has used, some what a process or a session has used since it
began. A counter is read like an electricity meter: what is booked is the difference to the
reading before. Meters are also exchanged (the count begins anew) and misread (an old reading comes
late). Both look alike at first: a reading below the last one. So nothing is booked for it until
the next reading tells: one that goes on from the low reading shows a new count, one that is back
at the old height shows a stale reading.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from sessionmgr.model.usage import NOTHING_SAID, NOTHING_USED, Cost, Provenance, Usage
from sessionmgr.model.value import Value

COUNTERS: Final = Usage.__struct_fields__


class UsageReport(Value, frozen=True, kw_only=True, gc=False):
    """What a provider says it has used.

    A total counts from the beginning of the `process`, or with no process named from the beginning
    of the provider's session, however many processes have served it.
    """

    kind: Literal["delta", "total"]
    provider_session_id: str
    process: str | None = None
    usage: Usage = NOTHING_USED
    usd: float | None = None
    provenance: Provenance = Provenance.UNKNOWN


class UsageMeter(Value, frozen=True, kw_only=True, gc=False):
    """One counter: the last reading that was booked, and a lower one nobody can explain yet."""

    booked: float = 0
    doubtful: float | None = None

    def advance(self, reading: float) -> tuple[UsageMeter, float]:
        """Return the meter after `reading`, and what that adds."""
        if reading >= self.booked:
            return UsageMeter(booked=reading), reading - self.booked
        if self.doubtful is not None and reading > self.doubtful:
            return UsageMeter(booked=reading), reading  # it counts anew
        return UsageMeter(booked=self.booked, doubtful=reading), 0


class UsageBooking(Value, frozen=True, kw_only=True, gc=False):
    """What one report adds, and the total so far."""

    usage: Usage
    usd: float | None
    provenance: Provenance
    total: Usage


class UsageLedger(Value, frozen=True, kw_only=True):
    """All that was booked, and the meters' last readings: enough to go on after a restart."""

    total: Usage = NOTHING_USED
    cost: Cost = NOTHING_SAID
    meters: dict[str, dict[str, UsageMeter]] = msgspec.field(
        default_factory=dict[str, dict[str, UsageMeter]]
    )

    def book(self, report: UsageReport) -> tuple[UsageLedger, UsageBooking]:
        """Return the ledger with what `report` adds, and that."""
        meters = self.meters
        usage, usd = report.usage, report.usd
        if report.kind == "total":
            source = f"{report.provider_session_id}\n{report.process or ''}"
            read, added = _read_all(meters.get(source, {}), usage, usd)
            meters = {**meters, source: read}
            usage = Usage(**{counter: int(added[counter]) for counter in COUNTERS})
            usd = None if usd is None else added["usd"]
        total = self.total + usage
        provenance = Provenance.UNKNOWN if usd is None else report.provenance
        cost = self.cost
        if usd is not None:  # a later reading includes costs that an earlier one omitted
            booked = Cost(usd=usd, provenance=provenance)
            cost = booked if cost == NOTHING_SAID else cost + booked
        ledger = UsageLedger(total=total, cost=cost, meters=meters)
        return ledger, UsageBooking(usage=usage, usd=usd, provenance=provenance, total=total)


def _read_all(
    meters: dict[str, UsageMeter], usage: Usage, usd: float | None
) -> tuple[dict[str, UsageMeter], dict[str, float]]:
    readings: dict[str, float] = msgspec.structs.asdict(usage)
    if usd is not None:
        readings["usd"] = usd
    read, added = dict(meters), dict[str, float]()
    for name, reading in readings.items():
        read[name], added[name] = meters.get(name, UsageMeter()).advance(reading)
    return read, added
