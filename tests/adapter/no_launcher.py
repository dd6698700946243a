"""Launcher for tests that start no process."""

from sessionmgr.process import Command
from sessionmgr.process.launcher import ChildTree


class NoLauncher:
    async def spawn(self, command: Command) -> ChildTree:
        raise AssertionError(f"{command} was not to be started")
