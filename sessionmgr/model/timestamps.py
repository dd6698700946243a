"""Timestamps as stored: RFC 3339, UTC, milliseconds."""

from datetime import UTC, datetime
from functools import lru_cache
from math import floor


def format_timestamp(seconds: float) -> str:
    """Format a time given in seconds since 1970."""
    second = floor(seconds)
    milliseconds = round((seconds - second) * 1_000_000) // 1000  # rounds as `datetime` does
    second, millisecond = divmod(second * 1000 + milliseconds, 1000)
    return f"{_format_second(second)}.{millisecond:03}Z"


@lru_cache(maxsize=2)
def _format_second(second: int) -> str:
    # Cached: many events share a second, and the calendar is most of the work.
    return datetime.fromtimestamp(second, UTC).isoformat()[:-6]


def format_optional_timestamp(seconds: float | None) -> str | None:
    """Format a time from a foreign source; None if it is missing or out of range."""
    if seconds is None:
        return None
    try:
        return format_timestamp(seconds)
    except (ValueError, OverflowError, OSError):
        return None


def parse_timestamp(moment: str) -> float:
    """Parse a timestamp into seconds since 1970.

    Raises:
        ValueError: The text is not an RFC 3339 timestamp with a time zone.
    """
    when = datetime.fromisoformat(moment)
    if when.tzinfo is None:
        raise ValueError(f"timestamp {moment!r} has no time zone: append Z or an offset")
    return when.timestamp()


def seconds_between(earlier: str | None, later: str | None) -> float | None:
    """Return the seconds between two timestamps; None if one is missing or unreadable."""
    if earlier is None or later is None:
        return None
    try:
        return round(parse_timestamp(later) - parse_timestamp(earlier), 3)
    except ValueError:
        return None
