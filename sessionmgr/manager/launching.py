"""The launcher's place in the tree: it comes up when first wanted, and goes down last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

if TYPE_CHECKING:
    from pathlib import Path

    from sessionmgr.process.command import Command
    from sessionmgr.process.launcher import ChildTree, Launcher


class LateLauncher:
    """A launcher that costs nothing until it is needed."""

    def __init__(self, given: Launcher | None = None, state_dir: Path | None = None) -> None:
        self._given: Final = given
        self._state_dir: Final = state_dir
        self._wanted = trio.Event()
        self._ready = trio.Event()
        self._launcher: Launcher | None = given

    async def serve(self) -> None:
        """Be the child that owns it."""
        if self._given is not None:
            await trio.sleep_forever()
        await self._wanted.wait()
        from sessionmgr.process.opening import open_launcher  # not everybody needs it

        async with open_launcher(state_dir=self._state_dir) as launcher:
            self._launcher = launcher
            self._ready.set()
            try:
                await trio.sleep_forever()
            finally:
                self._launcher = None
                self._ready = trio.Event()

    async def spawn(self, command: Command) -> ChildTree:
        """Start a child; see `Launcher.spawn`."""
        while self._launcher is None:
            self._wanted.set()
            await self._ready.wait()
        return await self._launcher.spawn(command)
