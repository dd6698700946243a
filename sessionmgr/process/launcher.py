"""Launchers and child trees: the protocols that all implementations fit."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import trio

    from sessionmgr.process.command import Command
    from sessionmgr.process.exit_report import ExitReport, ProgramExit


class ChildTree(Protocol):
    """Child process and all its descendants. `open_tree` starts one and ends it."""

    @property
    def pid(self) -> int:
        """Process id of the program."""
        ...

    @property
    def id(self) -> str:
        """Id of the tree, which its processes carry as their tag; no two trees have the same."""
        ...

    @property
    def is_over(self) -> bool:
        """Whether the tree is known to be over."""
        ...

    @property
    def stdin(self) -> trio.abc.SendStream | None:
        """Stream to its stdin; None if its stdin is /dev/null."""
        ...

    @property
    def stdout(self) -> trio.abc.ReceiveStream:
        """Stream from its stdout."""
        ...

    @property
    def stderr(self) -> trio.abc.ReceiveStream:
        """Stream from its stderr."""
        ...

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the program alone; do nothing if it has ended."""
        ...

    def kill(self) -> None:
        """Begin to kill the whole tree. `wait_empty` waits for the end."""
        ...

    async def wait_exit(self) -> ProgramExit:
        """Wait for the end of the program. Its descendants may live on and hold its pipes."""
        ...

    async def wait_empty(self) -> ExitReport:
        """Wait until the tree is empty, except for processes that cannot be killed."""
        ...

    async def abandon(self) -> ExitReport:
        """Stop waiting for a killed tree: kill what a search finds of it, and report the rest."""
        ...

    async def aclose(self) -> None:
        """Close the pipes and release the tree; what still lives of it is killed."""
        ...


class Launcher(Protocol):
    """Starter of child trees. Leaving its block ends all of them."""

    async def spawn(self, command: Command) -> ChildTree:
        """Start a child.

        The child runs when this returns; it does not run if this raises or is cancelled.

        Raises:
            ProgramNotFound: The program does not exist, or the interpreter that it names does not.
            NotExecutable: The file exists and cannot be executed.
            NoSuchDirectory: The directory to run it in does not exist, or is not accessible.
            SpawnFailed: The system refused for another reason; base class of the three above.
            SpawnerKilled: The starting process was killed; the unfinished start was ended.
            DescriptorsExhausted: The start would leave too few file descriptors.
            LauncherFailed: The launcher cannot start children any more.
        """
        ...
