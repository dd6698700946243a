"""Times for display, and times that users type."""

from __future__ import annotations

import time
from datetime import datetime

from sessionmgr.cli.errors import CommandLineInvalid
from sessionmgr.cli.terminal.format import format_age
from sessionmgr.model import parse_duration, parse_timestamp


def format_clock(at: float, now: float) -> str:
    """Format a time as local time, as short as possible."""
    then, today = time.localtime(at), time.localtime(now)
    if then[:3] == today[:3]:
        return time.strftime("%H:%M:%S", then)
    return time.strftime("%b %d %H:%M" if then[0] == today[0] else "%Y-%m-%d", then)


def format_ago(written: str, now: float) -> str:
    """Format how long ago a timestamp was."""
    return f"{format_age(now - parse_timestamp(written))} ago"


def parse_since(flag: str, text: str, now: float) -> float:
    """Parse a time: an age (`90m`, `2d`) or a date, with or without a time of day.

    Raises:
        CommandLineInvalid: It is neither.
    """
    if text.strip()[-1:].isalpha() and (seconds := parse_duration(text)) is not None:
        return now - seconds
    try:
        return datetime.fromisoformat(text.strip()).timestamp()  # without a zone: local time
    except (ValueError, OverflowError):
        raise CommandLineInvalid(
            f"{flag}: invalid time {text!r}; use an age (90m, 12h, 7d) or a date (2026-01-31)"
        ) from None
