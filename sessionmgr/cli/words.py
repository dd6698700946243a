"""How values are told to people: moments, durations, amounts, and text that harms no terminal."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from sessionmgr.errors import CommandLineInvalid

if TYPE_CHECKING:
    from sessionmgr.model import Usage

# What a terminal would obey rather than show; newlines and tabs are dealt with by who prints.
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_AGE: Final = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")


def harmless(text: str) -> str:
    """Return the text without anything that a terminal obeys."""
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """Return the text as one line."""
    return " ".join(harmless(text).split())


def duration(seconds: float | None) -> str:
    """Say how long something took."""
    if seconds is None:
        return ""
    if seconds < 10:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02}s"
    if whole < 86400:
        return f"{whole // 3600}h{whole % 3600 // 60:02}m"
    return f"{whole // 86400}d{whole % 86400 // 3600:02}h"


def age(moment: float, now: float) -> str:
    """Say how long ago something was."""
    return f"{duration(max(0.0, now - moment))} ago"


def clock(moment: float, now: float) -> str:
    """Say when something was, in local time, as short as it can be."""
    then, today = time.localtime(moment), time.localtime(now)
    if then[:3] == today[:3]:
        return time.strftime("%H:%M:%S", then)
    return time.strftime("%b %d %H:%M" if then[0] == today[0] else "%Y-%m-%d", then)


def money(usd: float | None) -> str:
    """Write an amount of dollars: cents, or what matters of less."""
    if usd is None:
        return "-"
    if usd == 0 or usd >= 0.1:
        return f"${usd:,.2f}"
    return f"${usd:.4f}" if usd >= 0.0001 else f"${usd:.2g}"


def count(number: int) -> str:
    """Write a number of tokens in few characters."""
    if number < 10_000:
        return str(number)
    for unit, size in (("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000)):
        if number < 999_500 * size / 1_000 * 1_000 or unit == "G":
            value = number / size
            return f"{value:.1f}{unit}" if value < 100 else f"{value:.0f}{unit}"
    return str(number)


def tokens(usage: Usage) -> str:
    """Say which tokens were used, in words."""
    parts = [
        (usage.input, "in"),
        (usage.cached_input, "cached"),
        (usage.cache_write, "written to cache"),
        (usage.output, "out"),
        (usage.reasoning, "reasoning"),
    ]
    return ", ".join(f"{number:,} {what}" for number, what in parts if number) or "none"


def since(text: str, now: float) -> float:
    """Read a moment that a person has typed: an age (`90m`, `2d`) or a date, with or without time.

    Raises:
        CommandLineInvalid: It is neither.
    """
    if found := _AGE.fullmatch(text.strip()):
        return now - float(found[1]) * _UNITS[found[2]]
    try:
        when = datetime.fromisoformat(text.strip())
        if when.tzinfo is None:
            when = when.astimezone()
        return (when - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(seconds=1)
    except (ValueError, OverflowError):
        raise CommandLineInvalid(
            f"{text!r} is no moment: write an age like 90m, 12h or 7d, or a date like 2026-01-31"
        ) from None
