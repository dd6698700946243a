"""Durations are parsed in the forms that users write."""

import pytest
from hypothesis import given, strategies as st

from sessionmgr.model.duration import parse_duration, seconds_from


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("900", 900.0),
        ("900.0", 900.0),
        (".5", 0.5),
        ("90s", 90.0),
        ("15m", 900.0),
        ("15 min", 900.0),
        (" 2h ", 7200.0),
        ("1.5h", 5400.0),
        ("1h30m", 5400.0),
        ("1d 2h 3m 4s", 93784.0),
        ("1w", 604800.0),
        ("0", 0.0),
        (900, 900.0),
        (0.25, 0.25),
    ],
)
def test_a_duration_is_understood(value: object, seconds: float) -> None:
    assert seconds_from(value) == seconds


@pytest.mark.parametrize(
    "value",
    [
        *("", " ", "soon", "15x", "-5", "30m1h", "1h1h", "h", "1e9", "inf", "nan", "5 5", "٣m"),
        *("9" * 101, True, None, -1, float("inf"), float("nan"), [], {}),
    ],
)
def test_what_is_no_duration_is_none(value: object) -> None:
    assert seconds_from(value) is None


@given(hours=st.integers(0, 9999), minutes=st.integers(0, 9999), seconds=st.floats(0, 9999))
def test_parts_are_added_up(hours: int, minutes: int, seconds: float) -> None:
    text = f"{hours}h{minutes}m{seconds:f}s"
    assert parse_duration(text) == pytest.approx(
        hours * 3600 + minutes * 60 + float(f"{seconds:f}")
    )
