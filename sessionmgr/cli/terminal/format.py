"""Amounts for display: durations, counts, costs and rates."""

from __future__ import annotations

from typing import Final

from sessionmgr.model import Provenance, Usage

_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_STEPS: Final = ((10**9, "G"), (10**6, "M"), (10**3, "k"))
_SMALL: Final = 9.95  # from here on a decimal digit carries no information


def format_duration(seconds: float) -> str:
    """Format a duration: `0.4 s`, `41 s`, `3 min 20 s`, `2 h 05 min`, `3 d 4 h`."""
    if seconds < _SMALL:
        return f"{max(seconds, 0.0):.1f} s"
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE:02} s"
    if whole < _DAY:
        return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE:02} min"
    return f"{whole // _DAY} d {whole % _DAY // _HOUR} h"


def format_age(seconds: float) -> str:
    """Format an age in at most six characters: `41s`, `3m20s`, `2h05m`, `3d04h`."""
    whole = max(int(seconds), 0)
    if whole < _MINUTE:
        return f"{whole}s"
    if whole < _HOUR:
        return f"{whole // _MINUTE}m{whole % _MINUTE:02}s"
    if whole < _DAY:
        return f"{whole // _HOUR}h{whole % _HOUR // _MINUTE:02}m"
    return f"{whole // _DAY}d{whole % _DAY // _HOUR:02}h"


def format_count(number: int) -> str:
    """Format a count: `512`, `8.1 k`, `1.2 M`."""
    for step, name in _STEPS:
        if number >= step:
            return f"{number / step:.1f} {name}"
    return str(number)


def pluralize(number: int, one: str, many: str | None = None) -> str:
    """Format a number of things: `1 job`, `2 jobs`."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def format_cost(usd: float | None, provenance: Provenance = Provenance.REPORTED) -> str:
    """Format a cost: `$0.0312`, `~$3.41` (priced), `$3.41+ (partial)`; empty if unknown."""
    if usd is None:
        return ""
    digits = 4 if 0 < usd < 1 else 2
    if provenance is Provenance.PARTIAL:
        return f"${usd:.{digits}f}+ (partial)"
    return f"{'~' if provenance is not Provenance.REPORTED else ''}${usd:.{digits}f}"


def format_tokens(usage: Usage) -> str:
    """Format the numbers of tokens: `1,200 in, 80 out`."""
    parts = (
        (usage.input, "in"),
        (usage.cached_input, "cached"),
        (usage.cache_write, "written to the cache"),
        (usage.output, "out"),
        (usage.reasoning, "reasoning"),
    )
    return ", ".join(f"{number:,} {what}" for number, what in parts if number) or "none"


def format_rate(per_second: float) -> str:
    """Format a rate: `2.1/s`, `14/min`, `3.0/h`."""
    for seconds, name in ((1, "s"), (_MINUTE, "min"), (_HOUR, "h")):
        each = per_second * seconds
        if each >= 1:
            return f"{each:.0f}/{name}" if each >= _SMALL else f"{each:.1f}/{name}"
    return f"{per_second * _HOUR:.1f}/h"
