"""Reports on stderr of why a command waits for the store, and for how long it may."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.cli.terminal.format import format_duration
from sessionmgr.cli.terminal.stdout import print_note
from sessionmgr.store import is_locked

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from sessionmgr.manager import Manager

LOOK_EVERY: Final = 0.25
FIRST: Final = 2.0
"""Seconds before the first report; later ones follow at growing intervals."""
LONGEST: Final = 60.0
"""Maximum seconds that a command waits for the store: the `store` clock."""


class StoreWaitReporter:
    """Reports what keeps a command waiting for the store, as long as it waits."""

    def __init__(self, path: Path, *, limit: float = LONGEST) -> None:
        self._path: Final = path
        self._limit: Final = limit
        self._since = trio.current_time()
        self._manager: Manager | None = None
        self._is_watched = True
        self._next = FIRST

    def attach(self, manager: Manager) -> None:
        """Report this manager's waits from now on."""
        self._manager = manager

    def end(self) -> None:
        """Stop reporting, because the progress display reports the waits."""
        self._is_watched = False

    async def watch(self) -> None:
        """Report waits until this is cancelled."""
        while True:
            await trio.sleep(LOOK_EVERY)
            waited, why = self._waited()
            if waited < FIRST:
                self._next = FIRST
            elif waited >= self._next and self._is_watched:
                self._next = max(2 * self._next, waited)
                await self._print(waited, why)

    def _waited(self) -> tuple[float, str | None]:
        if self._manager is None:
            return trio.current_time() - self._since, None
        store = self._manager.status().store
        return store.waiting, store.why

    async def _print(self, waited: float, why: str | None) -> None:
        if why is None:
            probe = partial(is_locked, self._path)
            locked = await trio.to_thread.run_sync(probe, abandon_on_cancel=True)
            what = "locked by another process" if locked else "its disk does not answer"
            why = f"{what} ({self._path})"
        so_far = f"{format_duration(waited)} so far, up to {format_duration(self._limit)}"
        print_note(f"waiting for the store ({so_far}): {why}")


async def run_reporting_waits(wait: StoreWaitReporter, work: Callable[[], Awaitable[int]]) -> int:
    """Run work, and report meanwhile why it waits for the store."""
    code, error = 0, None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait.watch)
        try:
            code = await work()
        except Exception as found:  # noqa: BLE001  # raised bare, not as the nursery's
            error = found
        nursery.cancel_scope.cancel()
    if error is not None:
        raise error
    return code
