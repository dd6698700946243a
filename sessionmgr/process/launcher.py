"""What starts children and owns their trees: by a warden, by process groups, or as a fake."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import trio

    from sessionmgr.process.command import Command
    from sessionmgr.process.exit_report import ExitReport, ProgramExit


class ChildTree(Protocol):
    """A child and all that comes of it. `open_tree` is what sees it to its end."""

    @property
    def pid(self) -> int:
        """The number of the program's process."""
        ...

    @property
    def id(self) -> str:
        """What its processes are marked with; no two trees have the same."""
        ...

    @property
    def is_over(self) -> bool:
        """Whether nothing more is to come, as far as is known."""
        ...

    @property
    def stdin(self) -> trio.abc.SendStream | None:
        """Where to write to it; None if it reads /dev/null."""
        ...

    @property
    def stdout(self) -> trio.abc.ReceiveStream:
        """What it writes."""
        ...

    @property
    def stderr(self) -> trio.abc.ReceiveStream:
        """What it complains."""
        ...

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the program alone; nothing if it has ended."""
        ...

    def kill(self) -> None:
        """Begin to kill the whole tree. It ends soon after: `wait_empty`."""
        ...

    async def wait_exit(self) -> ProgramExit:
        """Wait for the end of the program. What it started may live on, and hold its pipes."""
        ...

    async def wait_empty(self) -> ExitReport:
        """Wait until nothing of the tree is left but what cannot be reached."""
        ...

    async def abandon(self) -> ExitReport:
        """Give up waiting for a killed tree: kill what is found of it, and say what is left."""
        ...

    async def aclose(self) -> None:
        """Give up the pipes and the hold on the tree, which kills what still lives."""
        ...


class Launcher(Protocol):
    """Starts children. Whoever leaves its block has ended all of them."""

    async def spawn(self, command: Command) -> ChildTree:
        """Start a child; it may run when this returns, and not if it raises or is cancelled.

        Raises:
            ProgramNotFound: there is no such program, or not the interpreter that it names.
            NotExecutable: there is such a file, and it cannot be run.
            NoSuchDirectory: there is no such directory to run it in, or not for us.
            SpawnFailed: the system refused for another reason; the three above are such, too.
            TreeLost: whoever was to start it was killed meanwhile; what had begun was ended.
            DescriptorsExhausted: it would leave us too few open files for everything else.
            LauncherFailed: the launcher is over.
        """
        ...
