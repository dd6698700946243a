"""Claude Code in memory: a child tree whose pipes a test holds, without a process."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable

import msgspec
import trio
from trio.testing import MemoryReceiveStream, memory_stream_one_way_pair

from sessionmgr.model import Json
from sessionmgr.process import Command
from sessionmgr.process.exit_report import EmptyProof, ExitKind, ExitReport, ProgramExit

FACTS = ExitReport(
    exit_code=0,
    signal=None,
    ending=ExitKind.EXITED,
    forced=False,
    killed_by_os=False,
    emptied=EmptyProof.NO_CHILD,
)


class InMemoryChild:
    """Child with two sides: one for the adapter that has started it, one for the test."""

    pid = 1
    id = "in memory"

    def __init__(self) -> None:
        ours, theirs = memory_stream_one_way_pair()
        self.stdin: trio.abc.SendStream = ours
        self._heard: MemoryReceiveStream = theirs
        self._said, stdout = memory_stream_one_way_pair()
        self._complained, stderr = memory_stream_one_way_pair()
        self.stdout: trio.abc.ReceiveStream = stdout
        self.stderr: trio.abc.ReceiveStream = stderr
        self._gone = trio.Event()
        self._unread = b""

    # --- the test's side -------------------------------------------------------------------------

    async def hears(self) -> dict[str, Json] | None:
        """Read a line; None if there are no more."""
        while b"\n" not in self._unread:
            data = await self._heard.receive_some()
            if not data:
                return None
            self._unread += data
        line, _, self._unread = self._unread.partition(b"\n")
        return msgspec.json.decode(line, type=dict[str, Json])

    async def says(self, data: bytes) -> None:
        """Write to stdout, as one read."""
        await self._said.send_all(data)

    async def goes(self) -> None:
        """Exit."""
        await self._said.aclose()
        await self._complained.aclose()
        self._gone.set()

    # --- the adapter's side ----------------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        return self._gone.is_set()

    def signal(self, number: signal.Signals) -> None:
        self._gone.set()

    def kill(self) -> None:
        self._gone.set()

    async def wait_exit(self) -> ProgramExit:
        await self._gone.wait()
        return ProgramExit(exit_code=0)

    async def wait_empty(self) -> ExitReport:
        await self._gone.wait()
        return FACTS

    async def abandon(self) -> ExitReport:
        return await self.wait_empty()

    async def aclose(self) -> None:
        await self.stdout.aclose()


class InMemoryLauncher:
    """Launcher whose children run `play`."""

    def __init__(
        self, play: Callable[[InMemoryChild], Awaitable[None]], nursery: trio.Nursery
    ) -> None:
        self._play = play
        self._nursery = nursery

    async def spawn(self, command: Command) -> InMemoryChild:
        await trio.lowlevel.checkpoint()
        child = InMemoryChild()
        self._nursery.start_soon(self._play, child)
        return child
