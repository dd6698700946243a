"""Durations as users write them: 900, 90s, 15m, 2h, 1h30m, 1d."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from typing import Final

EXPECTED: Final = "a duration like 900, 15m or 2h"
"""The expected form, for error messages."""

_UNITS: Final = {"s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_NUMBER: Final = re.compile(r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+")
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*(min|[smhdw])\s*")
_PARTS: Final = re.compile(rf"(?:{_PART.pattern})+")
PATTERN: Final = r"^\s*([0-9.]+|([0-9.]+\s*(min|[smhdw])\s*)+)\s*$"
"""A necessary pattern of a duration, for a JSON Schema."""
LONGEST_TEXT: Final = 100


def parse_duration(text: str) -> float | None:
    """Parse a duration into seconds; None if the text is not one.

    A number alone is seconds. Parts go from the longest unit to the shortest: `1h30m`.
    """
    text = text.strip()
    if len(text) > LONGEST_TEXT:
        return None
    if _NUMBER.fullmatch(text):
        return float(text)
    if not _PARTS.fullmatch(text):
        return None
    parts = [(float(number), _UNITS[unit]) for number, unit in _PART.findall(text)]
    if any(after >= before for (_, before), (_, after) in pairwise(parts)):
        return None
    return sum(number * unit for number, unit in parts)


def seconds_from(value: object) -> float | None:
    """Return a number or a text as seconds; None if it is not a duration."""
    if isinstance(value, str):
        return parse_duration(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) and value >= 0 else None
