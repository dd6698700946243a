"""Amounts are short, and rounded to the precision that a reader needs."""

import pytest

from sessionmgr.cli.terminal.format import (
    format_age,
    format_cost,
    format_count,
    format_duration,
    format_rate,
    pluralize,
)
from sessionmgr.model import Provenance


@pytest.mark.parametrize(
    ("seconds", "words", "short"),
    [
        (-1, "0.0 s", "0s"),
        (0.42, "0.4 s", "0s"),
        (9.96, "10 s", "9s"),
        (41.2, "41 s", "41s"),
        (59.7, "1 min 00 s", "59s"),
        (200, "3 min 20 s", "3m20s"),
        (3599.6, "1 h 00 min", "59m59s"),
        (7500, "2 h 05 min", "2h05m"),
        (86400 * 3 + 4 * 3600, "3 d 4 h", "3d04h"),
    ],
)
def test_a_duration_is_said_in_its_two_largest_units(
    seconds: float, words: str, short: str
) -> None:
    assert format_duration(seconds) == words
    assert format_age(seconds) == short


@pytest.mark.parametrize(
    ("number", "said"),
    [(0, "0"), (512, "512"), (8100, "8.1 k"), (1_234_567, "1.2 M"), (4 * 10**9, "4.0 G")],
)
def test_a_large_number_is_said_in_short(number: int, said: str) -> None:
    assert format_count(number) == said


def test_money_says_whether_it_was_reported_or_worked_out() -> None:
    assert format_cost(None) == ""
    assert format_cost(0.0) == "$0.00"
    assert format_cost(0.0312) == "$0.0312"
    assert format_cost(3.411) == "$3.41"
    assert format_cost(3.411, Provenance.PRICED) == "~$3.41"
    assert format_cost(0.0047, Provenance.PARTIAL) == "$0.0047+ (partial)"


@pytest.mark.parametrize(
    ("per_second", "said"),
    [(250.0, "250/s"), (2.13, "2.1/s"), (0.25, "15/min"), (0.02, "1.2/min"), (0.0001, "0.4/h")],
)
def test_a_rate_is_said_in_the_unit_in_which_it_is_at_least_one(
    per_second: float, said: str
) -> None:
    assert format_rate(per_second) == said


def test_one_thing_is_not_several() -> None:
    assert pluralize(1, "job") == "1 job"
    assert pluralize(0, "job") == "0 jobs"
    assert pluralize(2, "try", "tries") == "2 tries"
