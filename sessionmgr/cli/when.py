"""Moments, as people type and read them."""

from __future__ import annotations

import re
import time
from datetime import datetime
from typing import Final

from sessionmgr.cli.amount import age
from sessionmgr.errors import CommandLineInvalid
from sessionmgr.model import moment

_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_AGE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])")


def clock(at: float, now: float) -> str:
    """Say when something was, in local time, as short as it can be."""
    then, today = time.localtime(at), time.localtime(now)
    if then[:3] == today[:3]:
        return time.strftime("%H:%M:%S", then)
    return time.strftime("%b %d %H:%M" if then[0] == today[0] else "%Y-%m-%d", then)


def ago(written: str, now: float) -> str:
    """Say how long ago a written moment was."""
    return f"{age(now - moment.read(written))} ago"


def since(text: str, now: float) -> float:
    """Read a moment that a person has typed: an age (`90m`, `2d`) or a date, with or without time.

    Raises:
        CommandLineInvalid: It is neither.
    """
    if found := _AGE.fullmatch(text.strip()):
        return now - float(found[1]) * _UNITS[found[2]]
    try:
        return datetime.fromisoformat(text.strip()).timestamp()  # without a zone: local time
    except (ValueError, OverflowError):
        raise CommandLineInvalid(
            f"{text!r} is no moment: write an age like 90m, 12h or 7d, or a date like 2026-01-31"
        ) from None
