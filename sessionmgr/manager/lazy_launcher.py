"""A launcher of child processes that opens on first use; the supervision tree stops it last.

If the launcher fails to start, only the starts that wait for it fail; the next start tries
again.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.process import LauncherFailed

if TYPE_CHECKING:
    from pathlib import Path

    from sessionmgr.process import ChildTree, Command, Launcher

log: Final = logging.getLogger("sessionmgr.manager")


class _LaunchAttempt:
    """One attempt to open the launcher; any number of starts may wait for it."""

    def __init__(self) -> None:
        self.wanted: Final = trio.Event()
        self.over: Final = trio.Event()
        self.failure: Exception | None = None


class LazyLauncher:
    """A launcher that is opened on first use."""

    def __init__(self, given: Launcher | None = None, state_dir: Path | None = None) -> None:
        self._given: Final = given
        self._state_dir: Final = state_dir
        self._opening = _LaunchAttempt()
        self._launcher: Launcher | None = given

    async def serve(self) -> None:
        """Open and close the launcher on demand. This is the body of its child in the tree."""
        if self._given is not None:
            await trio.sleep_forever()
        while True:
            await self._opening.wanted.wait()
            try:
                await self._open()
            except Exception as error:
                from sessionmgr.process import (
                    is_transient_shortage,  # imported late: few programs need it
                )

                if not (
                    isinstance(error, LauncherFailed | OSError) or is_transient_shortage(error)
                ):
                    raise
                log.warning("The launcher failed. error=%s", error)
                self._opening.failure = error
            finally:
                self._launcher = None
                self._opening.over.set()
                self._opening = _LaunchAttempt()

    async def _open(self) -> None:
        """Open the launcher, which stays open until the end."""
        from sessionmgr.process import open_launcher

        async with open_launcher(state_dir=self._state_dir) as launcher:
            self._launcher = launcher
            self._opening.over.set()
            await trio.sleep_forever()

    async def spawn(self, command: Command) -> ChildTree:
        """Start a child; see `Launcher.spawn`."""
        while self._launcher is None:
            opening = self._opening
            opening.wanted.set()
            await opening.over.wait()
            if opening.failure is not None:
                raise _launcher_error(opening.failure) from opening.failure
        return await self._launcher.spawn(command)


def _launcher_error(error: Exception) -> LauncherFailed:
    """Return a separate error for each start: they are raised in different tasks."""
    return LauncherFailed(error.why if isinstance(error, LauncherFailed) else str(error))
