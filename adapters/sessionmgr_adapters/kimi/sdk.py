"""Connection to Kimi: a child process, its stdin and its stdout. Tests replace it by a mock SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.adapter import Allow
from sessionmgr.adapter.kit import (
    PeerReply,
    RpcCall,
    RpcOutgoing,
    StdioConnection,
    StdioConversation,
)
from sessionmgr_adapters.kimi.frames import KimiFrame, decode_lines, encode_outgoing

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from sessionmgr.adapter import Decision, Driver
    from sessionmgr.model import Json
    from sessionmgr.process import ExitReport, StderrTail
    from sessionmgr_adapters.kimi.launch import KimiSpec

DENIED: Final = "This call is not allowed. Continue without it."
"""Feedback of a denial without a reason: Kimi ends its turn at one without any feedback."""


def connect_kimi(spec: KimiSpec) -> AbstractAsyncContextManager[KimiConnection]:
    """Start Kimi, and own it for the length of the block."""
    return KimiConnection().running(spec.launcher, spec.command)


class KimiConnection(StdioConnection[RpcOutgoing, KimiFrame]):
    """One process of Kimi. It has one conversation at a time, all of the same session."""

    def __init__(self) -> None:
        super().__init__(decode_lines, encode_outgoing)

    async def open(self, spec: KimiSpec, driver: Driver[KimiFrame]) -> KimiConversation:
        """Open a conversation; its frames are pushed into the driver from now on."""
        await trio.lowlevel.checkpoint()
        self.attach(driver)
        return KimiConversation(self, driver)


class KimiConversation(StdioConversation[RpcOutgoing, KimiFrame]):
    """One run's conversation on a process."""

    async def interrupt(self) -> None:
        """Ask the agent to end the turn."""
        await self.send(RpcCall(0, "cancel", {}))

    async def answer(self, question: str, decision: Decision) -> None:
        """Answer a request for approval, for this once."""
        is_allowed = isinstance(decision, Allow)
        feedback = "" if is_allowed else decision.reason or DENIED
        response = "approve" if is_allowed else "reject"
        verdict: Json = {"request_id": question, "response": response, "feedback": feedback}
        await self.send(PeerReply(question, verdict))


class KimiProcess:
    """One process from its start to its end; it serves one run of its session at a time."""

    def __init__(self, spec: KimiSpec, connection: KimiConnection) -> None:
        self.spec: Final = spec
        self.connection: Final = connection
        self.version: str | None = None
        """The version that it reports, once it is initialized."""
        self.gone: Final = trio.Event()
        """Set when the process tree is empty."""

    @property
    def facts(self) -> ExitReport | None:
        """The report of its exit; None until then."""
        return self.connection.facts

    @property
    def tail(self) -> StderrTail:
        """The last lines that it wrote to stderr."""
        return self.connection.tail

    async def wait_closed(self) -> None:
        """Wait until the process is unusable."""
        await self.connection.wait_closed()

    def fits(self, spec: KimiSpec) -> bool:
        """Whether the process can serve a run that needs `spec`."""
        return self.spec == spec
