"""The connection to a toy agent: a child that is spawned, told lines, and read.

A mock puts another `connect` in the place of this one; all else of the adapter is then as it is.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import trio
from msgspec import UNSET

from sessionmgr.adapter.question import Allow
from sessionmgr.process import Pump
from sessionmgr.process.ladder import Ladder, end_tree, open_tree
from sessionmgr.testing.toy.frames import (
    DECODER,
    Answer,
    Cancel,
    Frame,
    Open,
    encode,
)
from sessionmgr.wire import NoFrame, read_frames

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from sessionmgr.adapter.connections import ConnectionSpec, Driver
    from sessionmgr.adapter.question import Decision
    from sessionmgr.process import Tail
    from sessionmgr.process.facts import ExitFacts
    from sessionmgr.process.launcher import ChildTree
    from sessionmgr.testing.toy.frames import Told
    from sessionmgr.wire import Line

LADDER: Final = Ladder(polite=0.5, term=1.0)
LAST_MOMENTS: Final = 1.0
"""Seconds from the end of an agent's output to its own."""


@asynccontextmanager
async def connect(spec: ConnectionSpec) -> AsyncGenerator[ToyConnection, None]:
    """Start an agent, and own it for the length of the block.

    Raises:
        ProcessError: It could not be started.
    """
    connection = ToyConnection()
    async with (
        open_tree(spec.launcher, spec.command, ladder=LADDER, polite=part) as tree,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(connection.run, tree)
        yield connection
        nursery.cancel_scope.cancel()


async def part(tree: ChildTree) -> None:
    """Ask an agent to end, in its own language: it does when its input has."""
    if tree.stdin is not None:
        await tree.stdin.aclose()


class ToyConnection:
    """One agent. It has one conversation after the other."""

    def __init__(self) -> None:
        self.facts: ExitFacts | None = None
        """How it ended, when it has."""
        self._driver: Driver[Frame | NoFrame] | None = None
        self._closed = trio.Event()
        self._pump: Final = Pump(self._take, room=self._room)

    @property
    def tail(self) -> Tail:
        """The last of what it complained."""
        return self._pump.tail

    async def run(self, tree: ChildTree) -> None:
        """Talk with the agent until it is gone."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._serve, tree)
            await self._pump.stdout_ended.wait()
            # Who says nothing any more is about to end. If not, it is of no use.
            with trio.move_on_after(LAST_MOMENTS):
                await tree.wait_exit()
            self.facts = await end_tree(tree, LADDER)
        self._closed.set()
        if self._driver is not None:
            self._driver.end()

    async def _serve(self, tree: ChildTree) -> None:
        await self._pump.run(
            stdin=tree.stdin, stdout=tree.stdout, stderr=tree.stderr, exited=tree.wait_exit
        )

    async def wait_closed(self) -> None:
        """Wait until the agent is gone."""
        await self._closed.wait()

    async def open(self, spec: Open, driver: Driver[Frame | NoFrame]) -> ToyConversation:
        """Begin a session, or go on with one; the agent says hello."""
        await trio.lowlevel.checkpoint()
        self._driver = driver
        if self._closed.is_set():
            driver.end()
        self.tell(spec)
        return ToyConversation(self)

    def leave(self) -> None:
        """Push no more frames."""
        self._driver = None

    def tell(self, message: Told) -> None:
        """Have a message written. That the agent has gone is told by the end of its events."""
        self._pump.outbox.send(encode(message))

    def _take(self, lines: Sequence[Line]) -> None:
        if self._driver is not None:  # what it says to nobody is not listened to
            size = sum(len(line) if isinstance(line, bytes) else 0 for line in lines)
            self._driver.feed(read_frames(lines, DECODER), size)

    async def _room(self) -> None:
        await trio.lowlevel.checkpoint()
        if self._driver is not None:
            await self._driver.room()


class ToyConversation:
    """One session of the agent's."""

    def __init__(self, connection: ToyConnection) -> None:
        self._connection: Final = connection

    async def send(self, message: Told) -> None:
        """Say something."""
        self._connection.tell(message)
        await trio.lowlevel.checkpoint()

    async def interrupt(self) -> None:
        """Ask the agent to end the turn."""
        await trio.lowlevel.checkpoint()
        self._connection.tell(Cancel())

    async def answer(self, question: str, decision: Decision) -> None:
        """Answer a question."""
        await trio.lowlevel.checkpoint()
        allow = isinstance(decision, Allow)
        changed = decision.tool_input if isinstance(decision, Allow) else UNSET
        self._connection.tell(
            Answer(id=question, allow=allow, input=changed, reason=decision.reason)
        )

    def close(self, *, keep: bool = False) -> None:
        """Push no more frames; the agent keeps its session in any case."""
        self._connection.leave()

    async def clear_away(self) -> None:
        """Do nothing: the agent's tools leave nothing behind."""
        await trio.lowlevel.checkpoint()
