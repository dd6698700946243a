"""Connection to Amp: a child process, its stdin and its stdout. Tests replace it by a mock SDK.

A process serves one run. It reads messages until its input ends, and writes its result only then.
"""

from __future__ import annotations

import signal
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.adapter.kit import StdioConnection, StdioConversation
from sessionmgr.process import Escalation, PrivateFiles
from sessionmgr_adapters.amp.frames import (
    AmpOutgoing,
    AmpPrompt,
    AnyAmpFrame,
    EndOfInput,
    decode_lines,
    encode_outgoing,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from sessionmgr.adapter import Decision, Driver
    from sessionmgr_adapters.amp.launch import AmpSpec

LADDER: Final = Escalation(polite=2.0, term=1.0)
"""Amp exits by itself after its result."""


@asynccontextmanager
async def connect_amp(spec: AmpSpec) -> AsyncGenerator[AmpConnection, None]:
    """Start Amp, and own it for the length of the block.

    Raises:
        ProcessError: The program could not be started.
    """
    connection = AmpConnection()
    with PrivateFiles() as files:
        async with connection.running(spec.launcher, spec.full_command(files)):
            yield connection


class AmpConnection(StdioConnection[AmpOutgoing, AnyAmpFrame]):
    """One process of Amp."""

    def __init__(self) -> None:
        super().__init__(decode_lines, encode_outgoing, ladder=LADDER)

    async def open(self, spec: AmpSpec, driver: Driver[AnyAmpFrame]) -> AmpConversation:
        """Open the conversation; its frames are pushed into the driver from now on."""
        await trio.lowlevel.checkpoint()
        self.attach(driver)
        return AmpConversation(self, driver)

    def end_input(self) -> None:
        """Close its stdin once all messages are written."""
        self._pump.outbox.close()


class AmpConversation(StdioConversation[AmpOutgoing, AnyAmpFrame]):
    """The conversation of a run."""

    def __init__(self, connection: AmpConnection, driver: Driver[AnyAmpFrame]) -> None:
        super().__init__(connection, driver)
        self._process: Final = connection

    async def send(self, message: AmpOutgoing) -> None:
        """Queue a message, or the end of the input, at once: they keep the order of the calls."""
        match message:
            case AmpPrompt():
                self._process.write_message(message)
            case EndOfInput():
                self._process.end_input()
        await trio.lowlevel.checkpoint()

    async def interrupt(self) -> None:
        """End the turn: there is no message for this, but Amp reports the signal as its result."""
        if self._process.tree is not None:
            self._process.tree.signal(signal.SIGINT)
        await trio.lowlevel.checkpoint()

    async def answer(self, question: str, decision: Decision) -> None:
        """Do nothing: Amp sends no questions."""
        await trio.lowlevel.checkpoint()

    async def discard(self) -> None:
        """End the process, and wait until its process tree is empty."""
        await self._process.aclose()
