"""The connection to an agent over ACP: one child process, and one conversation per session.

Tests replace it by a mock. `v1.py` or `v2.py` decodes and encodes its messages: the answer to the
handshake decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
import trio

from sessionmgr.adapter import ConnectionSpec
from sessionmgr.adapter.kit import JsonRpcConnection, JsonRpcConversation
from sessionmgr.model import Json
from sessionmgr_adapters.acp.frames import AcpFrame, Initialized, SessionOpened, SessionUpdate
from sessionmgr_adapters.acp.updates import SubagentUpdate
from sessionmgr_adapters.acp.v1 import NOTIFICATIONS, V1, AcpCall, ClientFeatures
from sessionmgr_adapters.acp.v2 import V2

if TYPE_CHECKING:
    from collections.abc import Hashable
    from contextlib import AbstractAsyncContextManager

    from sessionmgr.adapter import Decision, Driver
    from sessionmgr.wire import RpcErrorResponse, RpcNotification, RpcRequest, RpcResponse
    from sessionmgr_adapters.acp.v1 import ProtocolV1

WIRES: Final = {1: V1, 2: V2}
"""The protocol in each of its versions."""
IN_FLIGHT: Final = 512
"""Maximum number of open requests: a prompt is open for as long as the agent queues it."""
MAX_SUBAGENTS: Final = 1000
"""Maximum number of sub-agents whose sessions are known; the oldest one is forgotten."""
CLIENT_VERSION: Final = "1"
"""Our version, as agents see it."""


CLOSE_WAIT: Final = 5.0
"""Seconds for which a run waits until sessions that were left are closed."""


class AcpReply(msgspec.Struct, frozen=True):
    """Answer to a request of the agent: a result or, with a code, a refusal."""

    name: str
    result: Json = None
    code: int | None = None
    message: str = ""


AcpOutgoing: TypeAlias = AcpCall | AcpReply


class AcpSpec(ConnectionSpec, frozen=True, kw_only=True):
    """Specification of a connection: the agent's process, and what we offer to it."""

    features: ClientFeatures = ClientFeatures()
    version: int = 1
    """The protocol version that is offered."""

    @property
    def key(self) -> Hashable:
        """What interchangeable connections have in common."""
        return (super().key, self.features, self.version)


class AcpConversation(JsonRpcConversation[AcpFrame]):
    """One session of the agent, as one run uses it."""

    def __init__(self, connection: AcpConnection, driver: Driver[AcpFrame]) -> None:
        super().__init__(connection, driver)
        self._acp: Final = connection

    async def send(self, message: AcpOutgoing) -> None:
        """Send a request, or the answer to one of the agent's."""
        if isinstance(message, AcpCall) and message.method in NOTIFICATIONS:
            self._acp.notify(*message)
            await trio.lowlevel.checkpoint()
        elif isinstance(message, AcpCall):
            self.request(message.method, message.params)
            await trio.lowlevel.checkpoint()
        elif message.code is None:
            await self.reply(message.name, message.result)
        else:
            await self.refuse(message.name, message.code, message.message)

    async def interrupt(self) -> None:
        """Ask the agent to cancel the turn."""
        await trio.lowlevel.checkpoint()
        if self.session is not None:
            self._acp.notify(*self._acp.wire.cancel(self.session))

    async def answer(self, question: str, decision: Decision) -> None:
        """Not used: an answer names one of the options, so the driver sends an `AcpReply`."""
        raise NotImplementedError

    def close(self, *, keep: bool = False) -> None:
        """Push no more frames, and let the agent unload the session if it can."""
        if self.session is not None and not keep:
            self._acp.unload(self.session)
        super().close(keep=keep)


class AcpConnection(JsonRpcConnection[AcpFrame]):
    """One process of an agent."""

    def __init__(self, spec: AcpSpec) -> None:
        self.wire: ProtocolV1 = WIRES[spec.version]
        """The protocol, in the version that the agent speaks."""
        self._info: Initialized | None = None
        self._parents: Final[dict[str, str]] = {}
        """The sessions of the runs to which the sessions of sub-agents belong."""
        self._own: Final[set[str]] = set()
        """The sessions of the runs themselves."""
        greeting = self.wire.initialize(spec.features, CLIENT_VERSION)
        super().__init__(greeting=greeting, in_flight=IN_FLIGHT)

    async def open(self, session: str | None, driver: Driver[AcpFrame]) -> AcpConversation:
        """Open a conversation, with a session that exists or with the one that it will open."""
        await self.unanswered_done(CLOSE_WAIT)  # some agents open none meanwhile
        conversation = AcpConversation(self, driver)
        self.attach(conversation, session)
        return conversation

    def bind(self, conversation: JsonRpcConversation[AcpFrame], session: str) -> None:
        """Route messages about a session to a conversation, also if it was one of a sub-agent."""
        super().bind(conversation, session)
        self._own.add(session)
        self._parents.pop(session, None)

    def detach(self, conversation: JsonRpcConversation[AcpFrame]) -> None:
        """Push no more frames into a conversation's driver."""
        super().detach(conversation)
        self._own.discard(conversation.session or "")

    def unload(self, session: str) -> None:
        """Close a session whose run has left, if the agent can; its record stays."""
        if self._info is not None and self._info.capabilities.close and not self.has_ended:
            self.request_unanswered(*self.wire.close_session(session))

    def session_key(self, message: RpcRequest | RpcNotification) -> str | None:
        """Return the session that a message names; for one of a sub-agent, that of its run."""
        session = self.wire.session_of(message)
        return session if session is None else self._parents.get(session, session)

    def make_frame(self, message: RpcRequest | RpcNotification, name: str) -> AcpFrame:
        """Return the frame of a message; it may announce the session of a sub-agent."""
        frame = self.wire.decode(message, name)
        match frame:
            case SessionUpdate(session_id=parent, update=SubagentUpdate(session_id=child)):
                if child not in self._own:
                    self._parents[child] = self._parents.get(parent, parent)
                while len(self._parents) > MAX_SUBAGENTS:
                    del self._parents[next(iter(self._parents))]
            case _:
                pass
        return frame

    def on_handshake(self, answer: RpcResponse | RpcErrorResponse) -> AcpFrame:
        """Return the agent's description of itself, or its refusal."""
        frame = self.wire.decode_answer("initialize", answer)
        if isinstance(frame, Initialized):
            self._info, self.wire = frame, WIRES[frame.version]
        return frame

    def on_answer(
        self,
        conversation: JsonRpcConversation[AcpFrame],
        method: str,
        answer: RpcResponse | RpcErrorResponse,
    ) -> AcpFrame:
        """Return the frame of an answer; that of a new session binds the conversation to it."""
        frame = self.wire.decode_answer(method, answer)
        if isinstance(frame, SessionOpened) and frame.session_id:
            self.bind(conversation, frame.session_id)
        return frame


def connect_acp(spec: AcpSpec) -> AbstractAsyncContextManager[AcpConnection]:
    """Start an agent that runs for the length of the block.

    Raises:
        ProcessError: It could not be started.
    """
    return AcpConnection(spec).running(spec.launcher, spec.command)
