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

from sessionmgr.adapter.kit.arrivals import Arrivals
from sessionmgr.adapter.kit.stdio_child import ChildTalk
from sessionmgr.adapter.question import Allow
from sessionmgr.process import PrivateFiles
from sessionmgr.wire import NoFrame
from sessionmgr_adapters.claude.frames import Frame, HostRequest, System, read
from sessionmgr_adapters.claude.orders import HostReply, Request, encode

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Sequence

    from sessionmgr.adapter.question import Decision
    from sessionmgr.model import Json
    from sessionmgr.wire import Line
    from sessionmgr_adapters.claude.launch import ClaudeSpec
    from sessionmgr_adapters.claude.orders import Told


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


class ClaudeConnection(ChildTalk):
    """One Claude Code. It has one conversation after the other, all of the same session."""

    def __init__(self) -> None:
        super().__init__(self._take, room=self._room, over=self._is_over)
        # What it says before anybody listens is the beginning of the first conversation.
        self._first: ClaudeConversation | None = ClaudeConversation(self)
        self._conversation: ClaudeConversation | None = self._first

    async def part(self) -> None:
        """Have it end, and wait until nothing of it is left."""
        self.tell(Request(id="end", subtype="end_session", fields={"reason": "done"}))
        await super().part()

    async def open(self, spec: ClaudeSpec) -> ClaudeConversation:
        """Begin to listen to it, and talk."""
        await trio.lowlevel.checkpoint()
        first, self._first = self._first, None
        if first is not None:
            return first
        self._conversation = ClaudeConversation(self)
        if self.has_ended:
            self._conversation.arrivals.close()
        return self._conversation

    def leave(self, conversation: ClaudeConversation) -> None:
        """Listen no more; what is begun then is begun for nobody."""
        if self._conversation is conversation:
            self._conversation = None

    def tell(self, message: Told) -> bool:
        """Have a message written. That it has gone is told by the end of its events."""
        return self.write(encode(message))

    def _take(self, lines: Sequence[Line]) -> None:
        if not lines:
            return
        frames = read(lines)
        if self._conversation is not None:
            size = sum(len(line) if isinstance(line, bytes) else 0 for line in lines)
            self._conversation.arrivals.put(frames, size)
        elif any(map(_begins_something, frames)):
            self.close()  # nobody has asked for it: it is not to be used any more

    def _is_over(self) -> None:
        if self._conversation is not None:
            self._conversation.arrivals.close()

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
