"""A provider's pause after its limit was hit, stored for all batches."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from sessionmgr.store import Store

log: Final = logging.getLogger("sessionmgr.manager")


class ProviderPause(msgspec.Struct, frozen=True, kw_only=True):
    """No batch starts anything with the provider before a time."""

    until: float
    """Seconds since the epoch."""
    why: str = ""
    """The provider's message."""
    hits: int = 1
    """The number of times in a row that its limit was hit."""


async def stored_pauses(store: Store, now: float) -> dict[str, ProviderPause]:
    """Return the current pauses by provider."""
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
    """Set a provider's pause, or delete it with None."""
    await store.put_backoff(provider, None if pause is None else msgspec.json.encode(pause))


_decoder: Final = msgspec.json.Decoder(ProviderPause)
