"""How near the account's limits are, as events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from sessionmgr.model import RateLimitUpdated, moment

if TYPE_CHECKING:
    from sessionmgr.model import Event
    from sessionmgr_adapters.codex.frames import Limits, Window
    from sessionmgr_adapters.codex.state import State


def limits_told(limits: Limits, state: State) -> list[Event]:
    """Return the events that news of the limits are; none if they are no news."""
    limits = _together(limits, state.limits)
    if limits == state.limits:
        return []
    state.limits = limits
    return [
        _limit(f"{limits.limit_id or 'codex'}/{name}", window, limits)
        for name, window in (("primary", limits.primary), ("secondary", limits.secondary))
        if window is not None
    ]


def _together(limits: Limits, known: Limits | None) -> Limits:
    """Add what is known already: an update, maybe for another run, leaves out what it has not."""
    if known is None or (limits.limit_id or known.limit_id) != known.limit_id:
        return limits
    return replace(
        limits,
        limit_id=known.limit_id,
        primary=limits.primary or known.primary,
        secondary=limits.secondary or known.secondary,
    )


def _limit(bucket: str, window: Window, limits: Limits) -> Event:
    return RateLimitUpdated(
        bucket=bucket,
        state=limits.rate_limit_reached_type or "allowed",
        resets_at=moment.told(window.resets_at),
        utilisation=window.used_percent / 100,
    )
