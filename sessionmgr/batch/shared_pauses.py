"""Provider pauses after a limit was hit, shared with other batches through the store."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.manager import ProviderPause
from sessionmgr.store import StoreError

if TYPE_CHECKING:
    from sessionmgr.batch.scheduler import Scheduler
    from sessionmgr.manager import Manager

log: Final = logging.getLogger("sessionmgr.batch")

EVERY: Final = 30.0
"""Seconds between two checks for other batches' pauses."""
PATIENCE: Final = 5.0
"""Time limit in seconds for a check: an unresponsive store must not delay jobs."""
SLACK: Final = 1.0
"""Difference in seconds below which two times are equal."""


class SharedPauses:
    """Synchronizes the pauses of a batch's scheduler with those in the store."""

    def __init__(self, manager: Manager, scheduler: Scheduler) -> None:
        self._manager: Final = manager
        self._scheduler: Final = scheduler
        self._saved: Final[dict[str, float]] = {}
        """Ends of the pauses in the store, as far as this batch knows."""
        self._looked_at = float("-inf")

    @property
    def next_check(self) -> float:
        """Time of the next check of the store."""
        return self._looked_at + EVERY

    async def clear(self) -> None:
        """Drop the pauses in the store."""
        for provider in await self._manager.provider_pauses():
            await self._manager.pause_provider(provider, None)

    async def synchronize(self) -> None:
        """Store this batch's pauses, and periodically apply those of others."""
        now = trio.current_time()
        wall = self._manager.now()
        is_due = now >= self.next_check
        if is_due:
            self._looked_at = now
        try:
            with trio.move_on_after(PATIENCE):
                await self._save(now, wall)
                if is_due:
                    await self._apply(now, wall)
        except StoreError as error:  # the next check tries again; jobs continue
            log.warning("Pauses could not be shared through the store. error=%s", error)

    async def _save(self, now: float, wall: float) -> None:
        scheduler, manager = self._scheduler, self._manager
        for provider, left in scheduler.pauses(now).items():
            until = wall + left
            if until > self._saved.get(provider, 0.0) + SLACK:
                why, hits = scheduler.pause_reason(provider), scheduler.hits(provider)
                pause = ProviderPause(until=until, why=why, hits=hits)
                await manager.pause_provider(provider, pause)
                self._saved[provider] = until
        for provider in [each for each in self._saved if not scheduler.hits(each)]:
            await manager.pause_provider(provider, None)  # a later run succeeded
            del self._saved[provider]

    async def _apply(self, now: float, wall: float) -> None:
        for provider, pause in (await self._manager.provider_pauses()).items():
            if pause.until > self._saved.get(provider, 0.0) + SLACK:
                self._scheduler.pause(provider, now + pause.until - wall, pause.why)
                self._scheduler.merge_hits(provider, pause.hits)
                self._saved[provider] = pause.until
