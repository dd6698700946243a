"""Connection to Claude Code: a child process, its stdin and its stdout.

Tests replace it by a mock SDK. To end a process, the adapter sends a request to end the
session, and then closes its input. If it only closed the input, the process would finish its turn
first; if it only killed the process, the tools would survive until the reaper of the process tree
kills them.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import msgspec
import trio

from sessionmgr.adapter import Allow
from sessionmgr.adapter.kit import StdioConnection, StdioConversation
from sessionmgr.process import PrivateFiles
from sessionmgr.wire import NoFrame
from sessionmgr_adapters.claude.frames import ClaudeFrame, HostRequest, SystemFrame, decode_lines
from sessionmgr_adapters.claude.outgoing import (
    ClaudeOutgoing,
    ControlRequest,
    ControlResponse,
    encode_outgoing,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from sessionmgr.adapter import Decision, Driver
    from sessionmgr.model import Json
    from sessionmgr_adapters.claude.launch import ClaudeSpec


@asynccontextmanager
async def connect_claude(spec: ClaudeSpec) -> AsyncGenerator[ClaudeConnection, None]:
    """Start Claude Code, and own it for the length of the block.

    Raises:
        ProcessError: The program could not be started.
    """
    connection = ClaudeConnection()
    with PrivateFiles() as files:
        async with connection.running(spec.launcher, spec.full_command(files)):
            yield connection


class ClaudeConnection(StdioConnection[ClaudeOutgoing, ClaudeFrame | NoFrame]):
    """One process of Claude Code. It has one conversation at a time, all of the same session."""

    def __init__(self) -> None:
        super().__init__(decode_lines, encode_outgoing)

    async def aclose(self) -> None:
        """End the process, and wait until its process tree is empty."""
        self.write_message(
            ControlRequest(id="end", subtype="end_session", fields={"reason": "done"})
        )
        await super().aclose()

    async def open(
        self, spec: ClaudeSpec, driver: Driver[ClaudeFrame | NoFrame]
    ) -> ClaudeConversation:
        """Open a conversation; its frames are pushed into the driver from now on."""
        await trio.lowlevel.checkpoint()
        self.attach(driver)
        return ClaudeConversation(self, driver)

    def on_unhandled_frames(self, frames: Sequence[ClaudeFrame | NoFrame]) -> None:
        """Retire a process that starts work which no run has requested."""
        if any(map(_begins_something, frames)):
            self.retire()


def _begins_something(frame: ClaudeFrame | NoFrame) -> bool:
    match frame:
        case SystemFrame(state=state):
            return state in {"running", "requires_action"}
        case _:
            return isinstance(frame, HostRequest)


class ClaudeConversation(StdioConversation[ClaudeOutgoing, ClaudeFrame | NoFrame]):
    """One run's conversation on a process."""

    _interrupts = 0

    async def interrupt(self) -> None:
        """Ask the agent to end the turn, and to drop the messages that are queued for the next."""
        self._interrupts += 1
        fields: dict[str, Json] = {"cancel_queued": True}
        id_ = f"interrupt-{self._interrupts}"
        await self.send(ControlRequest(id=id_, subtype="interrupt", fields=fields))

    async def answer(self, question: str, decision: Decision) -> None:
        """Answer a request to use a tool."""
        await self.send(ControlResponse(id=question, response=verdict(decision)))


def verdict(decision: Decision) -> dict[str, Json]:
    """Return a decision in the format of Claude Code."""
    if isinstance(decision, Allow):
        allowed: dict[str, Json] = {"behavior": "allow"}
        if not isinstance(decision.tool_input, msgspec.UnsetType):
            allowed["updatedInput"] = decision.tool_input
        return allowed
    message = decision.reason or "The call was not allowed."
    denied: dict[str, Json] = {"behavior": "deny", "message": message}
    if decision.stop:
        denied["interrupt"] = True
    return denied
