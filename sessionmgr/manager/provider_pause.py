"""The pause of a provider whose limit was hit, as the store keeps it for all batches."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from sessionmgr.store import Store

log: Final = logging.getLogger("sessionmgr.manager")


class ProviderPause(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing is to be started with a provider before a moment."""

    until: float
    """Seconds since the epoch."""
    why: str = ""
    """What the provider said."""
    hits: int = 1
    """How often its limit was hit in a row."""


async def stored_pauses(store: Store, now: float) -> dict[str, ProviderPause]:
    """Return the pauses that are not over, by provider."""
    found: dict[str, ProviderPause] = {}
    for provider, body in (await store.backoffs()).items():
        try:
            pause = _decoder.decode(body)
        except msgspec.MsgspecError as error:
            log.warning("event=pause_not_read provider=%s why=%s", provider, error)
            continue
        if pause.until > now:
            found[provider] = pause
    return found


async def store_pause(store: Store, provider: str, pause: ProviderPause | None) -> None:
    """Set the pause of a provider, or with None forget it."""
    await store.put_backoff(provider, None if pause is None else msgspec.json.encode(pause))


_decoder: Final = msgspec.json.Decoder(ProviderPause)
