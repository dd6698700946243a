"""Usage ledger: turns providers' deltas and totals into deltas, counting each use once.

Some providers report what a call has used, some what a process or a session has used since it
began. A total is read like an electricity meter: the ledger books the difference to the previous
reading. A counter may restart (the count begins anew), and an old reading may arrive late. Both
look alike at first: a reading below the last one. The ledger books nothing for it and waits for
the next reading: one that continues from the low reading shows a restarted counter, one that is
back at the former height shows a stale reading.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from sessionmgr.model.usage import NOTHING_USED, UNKNOWN_COST, Cost, Provenance, Usage
from sessionmgr.model.value import Value

COUNTERS: Final = Usage.__struct_fields__


class UsageReport(Value, frozen=True, kw_only=True, gc=False):
    """A provider's report of usage.

    A total counts from the beginning of the `process` or, if no process is named, from the
    beginning of the provider's session, across all its processes.
    """

    kind: Literal["delta", "total"]
    provider_session_id: str
    process: str | None = None
    usage: Usage = NOTHING_USED
    usd: float | None = None
    provenance: Provenance = Provenance.UNKNOWN


class UsageMeter(Value, frozen=True, kw_only=True, gc=False):
    """One counter: the last booked reading, and a lower one that is not yet explained."""

    booked: float = 0
    doubtful: float | None = None

    def advance(self, reading: float) -> tuple[UsageMeter, float]:
        """Return the meter after `reading`, and the amount that the reading adds."""
        if reading >= self.booked:
            return UsageMeter(booked=reading), reading - self.booked
        if self.doubtful is not None and reading > self.doubtful:
            return UsageMeter(booked=reading), reading  # the counter restarted
        return UsageMeter(booked=self.booked, doubtful=reading), 0


class UsageBooking(Value, frozen=True, kw_only=True, gc=False):
    """The amount that one report adds, and the total so far."""

    usage: Usage
    usd: float | None
    provenance: Provenance
    total: Usage


class UsageLedger(Value, frozen=True, kw_only=True):
    """All booked usage and the meters' last readings: sufficient to continue after a restart."""

    total: Usage = NOTHING_USED
    cost: Cost = UNKNOWN_COST
    meters: dict[str, dict[str, UsageMeter]] = msgspec.field(
        default_factory=dict[str, dict[str, UsageMeter]]
    )

    def book(self, report: UsageReport) -> tuple[UsageLedger, UsageBooking]:
        """Book `report`; return the new ledger and the booking."""
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
            cost = booked if cost == UNKNOWN_COST else cost + booked
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
