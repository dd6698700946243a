"""One run's conversation with an app-server: its thread, and the threads of its agents.

A run's driver sends through the conversation. The conversation remembers what its messages are
about: which turns are running, which requests of Codex wait for an answer, and which threads ran
commands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import trio

from sessionmgr.adapter.kit import PeerReply, PeerRequest, RpcCall
from sessionmgr_adapters.codex import frames
from sessionmgr_adapters.codex.approvals import request_name, verdict
from sessionmgr_adapters.codex.items import CommandItem

if TYPE_CHECKING:
    from sessionmgr.adapter import Decision, Driver
    from sessionmgr.adapter.kit import RpcOutgoing
    from sessionmgr.model import Json
    from sessionmgr_adapters.codex.frames import CodexFrame


class ConversationHost(Protocol):
    """The connection, as a conversation uses it."""

    async def call(self, conversation: CodexConversation, call: RpcCall) -> None:
        """Send a call of a conversation; its answer becomes a frame of that conversation."""

    def call_soon(self, method: str, params: dict[str, Json]) -> None:
        """Send a call whose answer is ignored."""

    def reply(self, reply: PeerReply) -> None:
        """Answer a request of the app-server."""

    async def discard(self, thread: str) -> None:
        """Kill the processes that the commands of a thread left running."""

    def leave(self, conversation: CodexConversation, *, keep: bool) -> None:
        """End a conversation; `keep` its thread loaded if no turn is running."""


class CodexConversation:
    """One run's conversation: the run's thread, and the threads of its agents."""

    def __init__(self, connection: ConversationHost, driver: Driver[CodexFrame]) -> None:
        self.driver: Final = driver
        self.thread: str | None = None
        """The run's thread, once it is open."""
        self.turns: Final[dict[str, str]] = {}
        """The running turns, by thread."""
        self._connection: Final = connection
        self._open_requests: Final[dict[str, PeerRequest]] = {}
        self._command_threads: Final[set[str]] = set()
        self._is_interrupting = False

    @property
    def turn(self) -> str | None:
        """The running turn of the run's own thread."""
        return self.turns.get(self.thread or "")

    def note(self, frame: CodexFrame) -> None:
        """Record the request, turn or command that a frame reports."""
        match frame:
            case PeerRequest():
                self._open_requests[request_name(frame.id)] = frame
            case frames.TurnStartedNotice(thread_id=thread, turn=turn):
                self.turns[thread] = turn.id
                self._send_interrupt()
            case frames.TurnEndedNotice(thread_id=thread):
                self.turns.pop(thread, None)
            case frames.ItemStartedNotice(thread_id=thread, item=CommandItem()):
                self._command_threads.add(thread)
            case _:
                pass

    async def send(self, message: RpcOutgoing) -> None:
        """Send a call as soon as a slot is free, or send a reply."""
        await trio.lowlevel.checkpoint()
        if isinstance(message, RpcCall):
            await self._connection.call(self, message)
        else:
            self._connection.reply(message)

    async def discard(self) -> None:
        """Kill the processes that its commands left running, in whatever session they are."""
        await trio.lowlevel.checkpoint()
        for each in sorted(self._command_threads):
            await self._connection.discard(each)

    async def interrupt(self) -> None:
        """Ask Codex to interrupt the turn, as soon as a turn is running."""
        self._is_interrupting = True
        self._send_interrupt()
        await trio.lowlevel.checkpoint()

    def _send_interrupt(self) -> None:
        # `interrupt` may come before the turn's id is known, so both callers try.
        if self._is_interrupting and self.turn is not None:
            self._is_interrupting = False
            params: dict[str, Json] = {"threadId": self.thread, "turnId": self.turn}
            self._connection.call_soon("turn/interrupt", params)

    async def answer(self, question: str, decision: Decision) -> None:
        """Send the decision about a request; a request is answered once."""
        await trio.lowlevel.checkpoint()
        asking = self._open_requests.pop(question, None)
        if asking is not None:
            self._connection.reply(PeerReply(asking.id, verdict(asking, decision)))

    def close(self, *, keep: bool = False) -> None:
        """End the conversation; `keep` its thread loaded for the next run if no turn runs."""
        self._connection.leave(self, keep=keep)
