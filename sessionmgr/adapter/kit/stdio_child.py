"""Child process that speaks in lines, from its start to the proof that its tree is empty.

To end it, its input is closed (a subclass may first send a closing message); then signals
escalate. Cancelling its owner does not interrupt this.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.process import Escalation, InputFull, PipePump, end_tree
from sessionmgr.trio_util_types import move_on_when

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
    from typing import Self

    from sessionmgr.process import ChildTree, Command, ExitReport, Launcher, StderrTail
    from sessionmgr.wire import Line

LADDER: Final = Escalation(polite=3.0, term=2.0)
HURRIED_ESCALATION: Final = Escalation(polite=0.0, term=0.2, linger=0.2)
"""Escalation for a child whose time to end is over."""
LAST_MOMENTS: Final = 1.0
"""Seconds that a child has to exit after it has closed its output."""


class StdioChild:
    """Child process. `take` receives the lines of each read; `over` is called once it has exited.

    `take` and `over` run in the reader, so they neither wait nor raise. `room` is awaited between
    two reads. Use `running`, which starts the child; `run` is for an owner that has started it.
    """

    def __init__(
        self,
        take: Callable[[Sequence[Line]], None],
        *,
        room: Callable[[], Awaitable[None]],
        over: Callable[[], None],
        ladder: Escalation | None = None,
    ) -> None:
        self.tree: ChildTree | None = None
        """The process tree, once it was started."""
        self.facts: ExitReport | None = None
        """The report of the exit; None until then."""
        self.hurried = False
        """Set it before `aclose` if the grace of the run is over: the child is then killed soon."""
        self._over: Final = over
        self._ladder: Final = ladder or LADDER
        self._closed: Final = trio.Event()
        self._ended: Final = trio.Event()
        self._parting: Final = trio.Event()
        self._pump: Final = PipePump(take, room=room)

    @property
    def tail(self) -> StderrTail:
        """The last lines that the child wrote to stderr."""
        return self._pump.tail

    @property
    def has_ended(self) -> bool:
        """Whether it has exited."""
        return self._ended.is_set()

    @asynccontextmanager
    async def running(self, launcher: Launcher, command: Command) -> AsyncGenerator[Self, None]:
        """Start the child, and own it for the length of the block.

        Raises:
            ProcessError: The child could not be started.
        """
        tree = await launcher.spawn(command)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.run, tree)
            nursery.start_soon(self.run_background)
            try:
                yield self
            finally:
                with trio.CancelScope(shield=True):
                    await self.aclose()
                nursery.cancel_scope.cancel()

    async def run_background(self) -> None:
        """Run tasks of a subclass beside the reader; they are cancelled when the child exits."""
        await trio.lowlevel.checkpoint()

    async def run(self, tree: ChildTree) -> None:
        """Serve the pipes of a started child until it has exited, also if cancelled.

        It runs as a task of the owner. The child is ended by `aclose`, or by closing its output.
        """
        self.tree = tree
        with trio.CancelScope(shield=True):
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._serve, tree)
                    await self._wait_for_exit(tree)
                    self._closed.set()
                    ladder = HURRIED_ESCALATION if self.hurried else self._ladder
                    self.facts = await end_tree(tree, ladder)
                    with trio.move_on_after(LAST_MOMENTS):
                        await self._pump.stdout_ended.wait()
                    nursery.cancel_scope.cancel()
            finally:
                self._closed.set()
                self._ended.set()
                self._over()
                await tree.aclose()

    async def _wait_for_exit(self, tree: ChildTree) -> None:
        """Wait until the child has exited or closed its output, or its time to end is over."""
        async with move_on_when(partial(self._wait_for_silence, tree)):
            await self._parting.wait()
            with trio.move_on_after(0.0 if self.hurried else self._ladder.polite):
                await tree.wait_exit()

    async def _wait_for_silence(self, tree: ChildTree) -> None:
        await self._pump.stdout_ended.wait()
        # A child that has closed its output is about to exit; otherwise it is of no use.
        with trio.move_on_after(LAST_MOMENTS):
            await tree.wait_exit()

    async def _serve(self, tree: ChildTree) -> None:
        await self._pump.run(
            stdin=tree.stdin, stdout=tree.stdout, stderr=tree.stderr, exited=tree.wait_exit
        )

    def write(self, line: bytes) -> bool:
        """Queue a line with its newline; lines are written in the order of the calls.

        False means that there is no room: the child does not read. For a child that is gone it
        returns True and does nothing; `over` reports that.
        """
        try:
            return self._pump.outbox.send(line)
        except InputFull:  # the child does not read; the silence timeout ends its run
            return False

    async def aclose(self) -> None:
        """Close its input, and wait until its process tree is empty."""
        await trio.lowlevel.checkpoint()
        self._pump.outbox.close()
        self._parting.set()
        await self._ended.wait()

    def retire(self) -> None:
        """Mark it as unfit for further use, for the connection's own reasons: its pool ends it."""
        self._closed.set()

    async def wait_closed(self) -> None:
        """Wait until it is unfit for further use."""
        await self._closed.wait()
