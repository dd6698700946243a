"""Connection to a toy agent: a child process that reads and writes lines.

A mock SDK replaces `connect`; the rest of the adapter stays the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio
from msgspec import UNSET

from sessionmgr.adapter import Allow
from sessionmgr.adapter.kit import StdioConnection, StdioConversation
from sessionmgr.process import Escalation
from sessionmgr.testing.toy.frames import AnyFrame, Outgoing, ToyAnswer, ToyCancel, ToyOpen, read

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from sessionmgr.adapter import ConnectionSpec, Decision, Driver

LADDER: Final = Escalation(polite=0.5, term=1.0)


def connect(spec: ConnectionSpec) -> AbstractAsyncContextManager[ToyConnection]:
    """Start an agent, and own it for the length of the block."""
    return ToyConnection().running(spec.launcher, spec.command)


class ToyConnection(StdioConnection[Outgoing, AnyFrame]):
    """Connection to one agent, with one conversation at a time."""

    def __init__(self) -> None:
        super().__init__(read, ladder=LADDER)

    async def open(self, spec: ToyOpen, driver: Driver[AnyFrame]) -> ToyConversation:
        """Open a session, new or resumed; the agent answers with `ToyHello`."""
        self.attach(driver)
        self.write_message(spec)
        await trio.lowlevel.checkpoint()
        return ToyConversation(self, driver)


class ToyConversation(StdioConversation[Outgoing, AnyFrame]):
    """One session of the agent."""

    async def interrupt(self) -> None:
        """Ask the agent to end the turn."""
        await self.send(ToyCancel())

    async def answer(self, question: str, decision: Decision) -> None:
        """Answer a question."""
        allow = isinstance(decision, Allow)
        changed = decision.tool_input if isinstance(decision, Allow) else UNSET
        await self.send(ToyAnswer(id=question, allow=allow, input=changed, reason=decision.reason))
