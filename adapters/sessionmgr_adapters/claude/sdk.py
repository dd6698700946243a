"""The connection to Claude Code: a child that is spawned, told lines, and read.

It is the seam that a mock takes the place of. It ends as it likes to be ended: it is told so, and
its input is closed after that. Closing alone would have it finish its turn first, and a kill alone
would leave its tools behind, but for the guard that owns the tree.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import msgspec
import trio

from sessionmgr.errors import InputFull
from sessionmgr.process import PrivateFiles, Pump
from sessionmgr.process.ladder import Ladder, end_tree
from sessionmgr.provider.arrivals import Arrivals
from sessionmgr.provider.question import Allow
from sessionmgr.wire import NoFrame
from sessionmgr_adapters.claude.frames import Frame, HostRequest, System, read
from sessionmgr_adapters.claude.orders import HostReply, Request, encode

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Sequence

    from sessionmgr.model import Json
    from sessionmgr.process import Tail
    from sessionmgr.process.facts import ExitFacts
    from sessionmgr.process.launcher import ChildTree
    from sessionmgr.provider.question import Decision
    from sessionmgr.wire import Line
    from sessionmgr_adapters.claude.launch import ClaudeSpec
    from sessionmgr_adapters.claude.orders import Told

POLITE: Final = 3.0
"""Seconds to end once it is told to."""
LADDER: Final = Ladder(polite=POLITE, term=2.0)
HURRIED: Final = Ladder(polite=0.0, term=0.2, linger=0.2)
"""For one that has had its time to obey, and has not."""
LAST_MOMENTS: Final = 1.0
"""Seconds from the end of its output to its own."""


@asynccontextmanager
async def connect(spec: ClaudeSpec) -> AsyncGenerator[ClaudeConnection, None]:
    """Start Claude Code, and own it for the length of the block.

    Raises:
        ProcessError: It could not be started.
    """
    connection = ClaudeConnection()
    with PrivateFiles() as files:
        paths = {flag: str(files.write(flag.strip("-"), text)) for flag, text in spec.files}
        command = msgspec.structs.replace(spec.command, argv=spec.argv(paths))
        tree = await spec.launcher.spawn(command)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(connection.run, tree)
            try:
                yield connection
            finally:
                with trio.CancelScope(shield=True):
                    await connection.part()


class ClaudeConnection:
    """One Claude Code. It has one conversation after the other, all of the same session."""

    def __init__(self) -> None:
        self.facts: ExitFacts | None = None
        """How it ended, when it has."""
        self.hurried = False
        """Whether it has had its time to end already."""
        self._conversation: ClaudeConversation | None = None
        self._closed: Final = trio.Event()
        self._ended: Final = trio.Event()
        self._parting: Final = trio.Event()
        self._pump: Final = Pump(self._take, room=self._room)

    @property
    def tail(self) -> Tail:
        """The last of what it complained."""
        return self._pump.tail

    async def run(self, tree: ChildTree) -> None:
        """Talk with it until it is gone, whoever is cancelled."""
        with trio.CancelScope(shield=True):
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._serve, tree)
                    await self._wait_for_the_end(tree)
                    self._closed.set()
                    ladder = HURRIED if self.hurried else LADDER
                    self.facts = await end_tree(tree, ladder)
                    with trio.move_on_after(LAST_MOMENTS):
                        await self._pump.stdout_ended.wait()
                    nursery.cancel_scope.cancel()
            finally:
                self._closed.set()
                self._ended.set()
                if self._conversation is not None:
                    self._conversation.arrivals.close()
                await tree.aclose()

    async def _wait_for_the_end(self, tree: ChildTree) -> None:
        """Wait until it has gone, or says nothing any more, or has had its time to go."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._until_silent, nursery.cancel_scope, tree)
            await self._parting.wait()
            patience = 0.0 if self.hurried else POLITE
            with trio.move_on_after(patience):
                await tree.wait_exit()
            nursery.cancel_scope.cancel()

    async def _until_silent(self, scope: trio.CancelScope, tree: ChildTree) -> None:
        await self._pump.stdout_ended.wait()
        # Who says nothing any more is about to end. If not, it is of no use.
        with trio.move_on_after(LAST_MOMENTS):
            await tree.wait_exit()
        scope.cancel()

    async def _serve(self, tree: ChildTree) -> None:
        await self._pump.run(
            stdin=tree.stdin, stdout=tree.stdout, stderr=tree.stderr, exited=tree.wait_exit
        )

    async def part(self) -> None:
        """Have it end, and wait until nothing of it is left."""
        await trio.lowlevel.checkpoint()
        self.tell(Request(id="end", subtype="end_session", fields={"reason": "done"}))
        self._pump.outbox.close()
        self._parting.set()
        await self._ended.wait()

    async def wait_closed(self) -> None:
        """Wait until it is of no use any more."""
        await self._closed.wait()

    async def open(self, spec: ClaudeSpec) -> ClaudeConversation:
        """Begin to listen to it, and talk."""
        await trio.lowlevel.checkpoint()
        self._conversation = ClaudeConversation(self)
        if self._ended.is_set():
            self._conversation.arrivals.close()
        return self._conversation

    def leave(self, conversation: ClaudeConversation) -> None:
        """Listen no more; what is begun then is begun for nobody."""
        if self._conversation is conversation:
            self._conversation = None

    def tell(self, message: Told) -> bool:
        """Have a message written. That it has gone is told by the end of its events."""
        try:
            return self._pump.outbox.send(encode(message))
        except InputFull:  # it does not read: what is told of its silence tells of that
            return False

    def _take(self, lines: Sequence[Line]) -> None:
        if not lines:
            return
        frames = read(lines)
        if self._conversation is not None:
            size = sum(len(line) if isinstance(line, bytes) else 0 for line in lines)
            self._conversation.arrivals.put(frames, size)
        elif any(map(_begins_something, frames)):
            self._closed.set()  # nobody has asked for it: it is not to be used any more

    async def _room(self) -> None:
        await trio.lowlevel.checkpoint()
        if self._conversation is not None:
            await self._conversation.arrivals.room()


def _begins_something(frame: Frame | NoFrame) -> bool:
    match frame:
        case System(state=state):
            return state in {"running", "requires_action"}
        case _:
            return isinstance(frame, HostRequest)


class ClaudeConversation:
    """A run's time with a Claude Code."""

    def __init__(self, connection: ClaudeConnection) -> None:
        self.arrivals: Final = Arrivals[Frame | NoFrame]()
        self._connection: Final = connection
        self._interrupts = 0

    async def send(self, message: Told) -> None:
        """Say something: at once, so that what is said after it comes after it."""
        self._connection.tell(message)
        await trio.lowlevel.checkpoint()

    async def interrupt(self) -> None:
        """Ask it to end the turn, and to forget what waits for the next."""
        self._interrupts += 1
        fields: dict[str, Json] = {"cancel_queued": True}
        id_ = f"interrupt-{self._interrupts}"
        self._connection.tell(Request(id=id_, subtype="interrupt", fields=fields))
        await trio.lowlevel.checkpoint()

    async def answer(self, question: str, decision: Decision) -> None:
        """Answer whether a tool may be used."""
        await trio.lowlevel.checkpoint()
        self._connection.tell(HostReply(id=question, response=verdict(decision)))

    def events(self) -> AsyncIterator[Sequence[Frame | NoFrame]]:
        """Iterate over what it says, a read at a time."""
        return self.arrivals

    def close(self) -> None:
        """Listen no more."""
        self._connection.leave(self)


def verdict(decision: Decision) -> dict[str, Json]:
    """Return what a decision is in Claude Code's words."""
    if isinstance(decision, Allow):
        allowed: dict[str, Json] = {"behavior": "allow"}
        if not isinstance(decision.tool_input, msgspec.UnsetType):
            allowed["updatedInput"] = decision.tool_input
        return allowed
    message = decision.reason or "It was not allowed."
    denied: dict[str, Json] = {"behavior": "deny", "message": message}
    if decision.stop:
        denied["interrupt"] = True
    return denied
