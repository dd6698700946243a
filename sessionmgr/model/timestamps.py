"""Moments as they are written: RFC 3339, UTC, milliseconds."""

from datetime import UTC, datetime
from functools import lru_cache
from math import floor


def format_timestamp(seconds: float) -> str:
    """Write a moment, given in seconds since 1970."""
    second = floor(seconds)
    milliseconds = round((seconds - second) * 1_000_000) // 1000  # as `datetime` has it
    second, millisecond = divmod(second * 1000 + milliseconds, 1000)
    return f"{_format_second(second)}.{millisecond:03}Z"


@lru_cache(maxsize=2)
def _format_second(second: int) -> str:
    # What happens, happens many times a second, and the calendar is most of the work.
    return datetime.fromtimestamp(second, UTC).isoformat()[:-6]


def format_optional_timestamp(seconds: float | None) -> str | None:
    """Write a moment that somebody else has told, if it is one that can be written."""
    if seconds is None:
        return None
    try:
        return format_timestamp(seconds)
    except (ValueError, OverflowError, OSError):
        return None


def parse_timestamp(moment: str) -> float:
    """Return the seconds since 1970 of a written moment.

    Raises:
        ValueError: It is no moment of RFC 3339.
    """
    when = datetime.fromisoformat(moment)
    if when.tzinfo is None:
        raise ValueError(f"{moment!r} does not say its time zone")
    return when.timestamp()


def seconds_between(earlier: str | None, later: str | None) -> float | None:
    """Return the seconds between two written moments, if both are known and readable."""
    if earlier is None or later is None:
        return None
    try:
        return round(parse_timestamp(later) - parse_timestamp(earlier), 3)
    except ValueError:
        return None
