"""The connection to Claude Code: a child process that is spawned, written to, and read.

This is the seam that a mock SDK replaces. A process ends when it is told to in its own words and
its input is closed after that. Closing the input alone would have it finish its turn first, and
a kill alone would leave its tools behind, but for the guard that owns the tree.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
import trio

from sessionmgr.adapter.connections import Driver
from sessionmgr.adapter.kit.stdio_child import ChildTalk
from sessionmgr.adapter.question import Allow
from sessionmgr.process import PrivateFiles
from sessionmgr.wire import NoFrame
from sessionmgr_adapters.claude.frames import Frame, HostRequest, System, read
from sessionmgr_adapters.claude.outgoing import ControlRequest, ControlResponse, encode

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from sessionmgr.adapter.question import Decision
    from sessionmgr.model import Json
    from sessionmgr.wire import Line
    from sessionmgr_adapters.claude.launch import ClaudeSpec
    from sessionmgr_adapters.claude.outgoing import Outgoing

Receiver: TypeAlias = Driver[Frame | NoFrame]


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
        super().__init__(self._take, room=self._room, over=self._tell_end)
        self._driver: Receiver | None = None
        self._opened: Final = trio.Event()
        self._early: Final[list[tuple[Sequence[Frame | NoFrame], int]]] = []
        """The read that came before the first conversation, and belongs to it."""

    async def part(self) -> None:
        """Have it end, and wait until nothing of it is left."""
        self.tell(ControlRequest(id="end", subtype="end_session", fields={"reason": "done"}))
        await super().part()

    async def open(self, spec: ClaudeSpec, driver: Receiver) -> ClaudeConversation:
        """Open a conversation; its frames are pushed into the driver from now on."""
        await trio.lowlevel.checkpoint()
        self._driver = driver
        self._opened.set()
        for frames, size in self._early:
            driver.feed(frames, size)
        self._early.clear()
        if self.has_ended:
            driver.end()
        return ClaudeConversation(self, driver)

    def leave(self, driver: Receiver) -> None:
        """Push no more frames into a driver."""
        if self._driver is driver:
            self._driver = None

    def tell(self, message: Outgoing) -> bool:
        """Write a message; False if there is no room. Its loss shows as the end of the frames."""
        return self.write(encode(message))

    def _take(self, lines: Sequence[Line]) -> None:
        if not lines:
            return
        frames = read(lines)
        size = sum([len(line) if isinstance(line, bytes) else 0 for line in lines])
        if self._driver is not None:
            self._driver.feed(frames, size)
        elif not self._opened.is_set():
            self._early.append((frames, size))
        elif any(map(_begins_something, frames)):
            self.close()  # no run has asked for it: the process is not used any more

    def _tell_end(self) -> None:
        if self._driver is not None:
            self._driver.end()

    async def _room(self) -> None:
        if self._driver is not None:
            await self._driver.room()
        else:  # one read is held at most; between two conversations there is no wait
            await self._opened.wait()


def _begins_something(frame: Frame | NoFrame) -> bool:
    match frame:
        case System(state=state):
            return state in {"running", "requires_action"}
        case _:
            return isinstance(frame, HostRequest)


class ClaudeConversation:
    """One run's use of a Claude Code."""

    def __init__(self, connection: ClaudeConnection, driver: Receiver) -> None:
        self._connection: Final = connection
        self._driver: Final = driver
        self._interrupts = 0

    async def send(self, message: Outgoing) -> None:
        """Send a message; it is written in the order of these calls."""
        self._connection.tell(message)
        await trio.lowlevel.checkpoint()

    async def interrupt(self) -> None:
        """Ask it to end the turn, and to drop the messages that wait for the next."""
        self._interrupts += 1
        fields: dict[str, Json] = {"cancel_queued": True}
        id_ = f"interrupt-{self._interrupts}"
        await self.send(ControlRequest(id=id_, subtype="interrupt", fields=fields))

    async def answer(self, question: str, decision: Decision) -> None:
        """Answer whether a tool may be used."""
        await self.send(ControlResponse(id=question, response=verdict(decision)))

    def close(self, *, keep: bool = False) -> None:
        """Push no more frames; Claude Code keeps its session in any case."""
        self._connection.leave(self._driver)

    async def clear_away(self) -> None:
        """Do nothing: what is left behind ends with the process."""
        await trio.lowlevel.checkpoint()


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
