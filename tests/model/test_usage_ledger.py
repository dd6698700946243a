"""Usage is booked as deltas, each thing once, however the provider reports it."""

from itertools import accumulate
from random import Random

import msgspec
from hypothesis import given, strategies as st

from sessionmgr.model import Cost, Provenance, Usage, UsageLedger, UsageReport, total_cost
from sessionmgr.model.usage_ledger import COUNTERS

STEPS = st.lists(st.integers(0, 1000), min_size=1, max_size=12)


def total(
    value: int, *, session: str = "s", process: str | None = "p", usd: float | None = None
) -> UsageReport:
    return UsageReport(
        kind="total",
        provider_session_id=session,
        process=process,
        usage=Usage(output=value),
        usd=usd,
        provenance=Provenance.REPORTED,
    )


def booked(*reports: UsageReport) -> list[int]:
    """Return what each report adds to the output tokens."""
    ledger, added = UsageLedger(), list[int]()
    for report in reports:
        ledger, booking = ledger.book(report)
        added.append(booking.usage.output)
        assert booking.total == ledger.total
    assert sum(added) == ledger.total.output
    return added


def test_deltas_are_booked_as_they_are() -> None:
    ledger = UsageLedger()
    for amount in (5, 0, 7):
        usage = Usage(**dict.fromkeys(COUNTERS, amount))
        ledger, _ = ledger.book(UsageReport(kind="delta", provider_session_id="s", usage=usage))
    assert ledger.total == Usage(**dict.fromkeys(COUNTERS, 12))


def test_of_totals_the_difference_is_booked() -> None:
    assert booked(total(100), total(150), total(150), total(175)) == [100, 50, 0, 25]


def test_totals_of_two_processes_or_sessions_are_two_counts() -> None:
    assert booked(total(100), total(30, process="q"), total(40, session="t")) == [100, 30, 40]
    assert booked(total(100), total(30, process="q"), total(110)) == [100, 30, 10]


def test_a_total_of_the_session_goes_on_in_its_next_process() -> None:
    assert booked(total(100, process=None), total(120, process=None)) == [100, 20]


def test_a_stale_total_adds_nothing() -> None:
    assert booked(total(869), total(111), total(900)) == [869, 0, 31]
    assert booked(total(869), total(500), total(111), total(900)) == [869, 0, 0, 31]


def test_a_count_that_began_anew_is_booked_once_the_next_report_shows_it() -> None:
    assert booked(total(869), total(10), total(25), total(40)) == [869, 0, 25, 15]
    assert booked(total(869), total(10), total(10), total(25)) == [869, 0, 0, 25]


@given(STEPS)
def test_totals_that_only_grow_add_up_to_the_last(steps: list[int]) -> None:
    readings = list(accumulate(steps))
    assert sum(booked(*map(total, readings))) == readings[-1]


@given(STEPS, st.lists(st.integers(0, 11), max_size=8))
def test_repeating_a_total_adds_nothing(steps: list[int], repeats: list[int]) -> None:
    readings = list(accumulate(steps))
    for at in sorted(repeats, reverse=True):
        if at < len(readings):
            readings.insert(at, readings[at])
    assert sum(booked(*map(total, readings))) == readings[-1]


@given(STEPS, st.integers(0, 11), st.floats(0, 0.99))
def test_one_reading_that_runs_backwards_changes_nothing(
    steps: list[int], at: int, fraction: float
) -> None:
    readings = list(accumulate(steps))
    at = min(at, len(readings) - 1)
    readings.insert(at + 1, int(readings[at] * fraction))
    readings.append(readings[-1] if len(readings) > at + 2 else sum(steps))
    assert sum(booked(*map(total, readings))) == sum(steps)


@given(st.lists(st.integers(0, 1000), max_size=15))
def test_nothing_is_ever_taken_back(readings: list[int]) -> None:
    assert all(added >= 0 for added in booked(*map(total, readings)))


def test_money_is_read_like_a_meter_too_and_silence_about_it_adds_nothing() -> None:
    ledger = UsageLedger()
    usds = list[float | None]()
    for report in (total(1), total(2, usd=0.5), total(3), total(4, usd=0.75), total(5, usd=0.1)):
        ledger, booking = ledger.book(report)
        usds.append(booking.usd)
    assert usds == [None, 0.5, None, 0.25, 0]
    assert ledger.cost == Cost(usd=0.75, provenance=Provenance.REPORTED)


def test_a_sum_is_as_good_as_its_worst_part() -> None:
    said = Cost(usd=1, provenance=Provenance.REPORTED)
    priced = Cost(usd=2, provenance=Provenance.PRICED)
    assert said + priced == priced + said == Cost(usd=3, provenance=Provenance.PRICED)
    partial = Cost(usd=1, provenance=Provenance.PARTIAL)
    assert said + Cost() == Cost() + said == partial
    assert priced + partial == Cost(usd=3, provenance=Provenance.PARTIAL)
    assert Cost() + Cost() == Cost()


COSTS = st.one_of(
    st.just(Cost()),
    st.builds(
        Cost,
        usd=st.integers(0, 50).map(float),
        provenance=st.sampled_from([Provenance.REPORTED, Provenance.PRICED, Provenance.PARTIAL]),
    ),
)


@given(st.lists(COSTS, min_size=1, max_size=6), st.randoms())
def test_a_sum_of_costs_does_not_depend_on_their_order(costs: list[Cost], random: Random) -> None:
    shuffled = random.sample(costs, len(costs))
    cut = random.randint(1, len(costs))
    halves = [total_cost(each) for each in (shuffled[:cut], shuffled[cut:]) if each]
    assert total_cost(costs) == total_cost(shuffled) == total_cost(halves)
    is_unknown = [each.usd is None for each in costs]
    assert (total_cost(costs).usd is None) == all(is_unknown)
    if any(is_unknown) and not all(is_unknown):
        assert total_cost(costs).provenance is Provenance.PARTIAL


def test_a_ledger_goes_on_after_it_was_written_and_read() -> None:
    ledger, _ = UsageLedger().book(total(100, usd=1.0))
    again = msgspec.json.decode(msgspec.json.encode(ledger), type=UsageLedger)
    assert again == ledger
    assert again.book(total(130, usd=1.5))[1].usage.output == 30
