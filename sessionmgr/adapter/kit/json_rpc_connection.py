"""Connection to a child that speaks JSON-RPC in lines and serves several sessions at once.

Each conversation has one of the agent's sessions, which the messages about it name. The frames of
one read are pushed in one `feed` to each driver. The routing rules:

- An answer goes to the conversation that made the request, the handshake's to all of them.
- A notification or a request of the agent goes to the conversation that is bound to its session.
- While a conversation waits for the name of its session, notifications about unknown sessions are
  held for it; otherwise they belong to a closed conversation, and are dropped.
- A notification that names no session, and a line that is not a message, go to all conversations.
- A request that belongs to no open conversation is refused.

Our requests are sent in the order of the calls, once the handshake has been answered and few enough
others are open. They have no deadline: if one is not answered, a timeout ends its run.

    class EchoConnection(JsonRpcConnection[Frame]):
        def __init__(self) -> None:
            super().__init__(greeting=("initialize", {}))

        async def open(self, spec: Open, driver: Driver[Frame | NoFrame]) -> EchoConversation:
            await trio.lowlevel.checkpoint()
            conversation = EchoConversation(self, driver)
            self.attach(conversation)
            conversation.request("open", {"cwd": spec.cwd})
            return conversation
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import msgspec
import trio

from sessionmgr.adapter.kit.json_rpc_peer import BUSY, IN_FLIGHT, WRITE_BUFFER_FULL, JsonRpcPeer
from sessionmgr.adapter.kit.stdio_child import StdioChild
from sessionmgr.adapter.kit.stdio_connection import read_size
from sessionmgr.model import UnreadableJson, encode_json, parse_json
from sessionmgr.wire import (
    RpcErrorResponse,
    RpcNotification,
    RpcRequest,
    RpcResponse,
    UntypedFrame,
    decode_rpc,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeAlias

    from sessionmgr.adapter import Driver
    from sessionmgr.model import Json
    from sessionmgr.process import Escalation
    from sessionmgr.wire import DecodedRpc, Line, NoFrame, RpcId

Frame = TypeVar("Frame")
T = TypeVar("T")
if TYPE_CHECKING:
    Push: TypeAlias = tuple["JsonRpcConversation[Frame]", Sequence[Frame | NoFrame]]

MAX_HELD_FRAMES: Final = 1000
"""Maximum number of frames that are held for conversations without a session."""
MAX_WAITING_MESSAGES: Final = 1000
"""Maximum number of requests that wait to be sent; a further one is refused."""
NO_METHOD: Final = -32601


class JsonRpcConversation(Generic[Frame]):
    """Base class of a conversation. A subclass implements `send`, `interrupt` and `answer`."""

    def __init__(
        self, connection: JsonRpcConnection[Frame], driver: Driver[Frame | NoFrame]
    ) -> None:
        self.driver: Final = driver
        self.session: str | None = None
        """The agent's name for the session, once it is bound."""
        self.open_requests: Final[dict[str, RpcId | None]] = {}
        """The ids of the agent's unanswered requests, by our names for them."""
        self._connection: Final = connection

    def request(self, method: str, params: Json) -> None:
        """Send a request; the connection's `on_answer` converts the answer to a frame."""
        self._connection.request(self, method, params)

    async def reply(self, name: str, result: Json) -> None:
        """Answer a request of the agent, unless it was answered before."""
        await trio.lowlevel.checkpoint()
        if name in self.open_requests:
            await self._connection.reply(
                RpcResponse(self.open_requests.pop(name), encode_json(result))
            )

    async def refuse(self, name: str, code: int, message: str) -> None:
        """Answer a request of the agent with an error, unless it was answered before."""
        await trio.lowlevel.checkpoint()
        if name in self.open_requests:
            await self._connection.reply(
                RpcErrorResponse(self.open_requests.pop(name), code, message)
            )

    def close(self, *, keep: bool = False) -> None:
        """Push no more frames, and forget the unanswered requests."""
        self._connection.detach(self)

    async def discard(self) -> None:
        """Do nothing: processes that the child's commands leave behind end with its tree."""
        await trio.lowlevel.checkpoint()


class _OpenRequest(msgspec.Struct, Generic[Frame], frozen=True, eq=False):
    """Open request and the conversation that made it; the handshake has none."""

    method: str
    conversation: JsonRpcConversation[Frame] | None = None


class JsonRpcConnection(StdioChild, Generic[Frame]):
    """Base class of a connection; a subclass opens conversations and makes frames of messages."""

    def __init__(
        self,
        *,
        greeting: tuple[str, Json] | None = None,
        in_flight: int = IN_FLIGHT,
        version: bool = True,
        ladder: Escalation | None = None,
    ) -> None:
        """`greeting` is the handshake, a method and its params: the first request.

        `in_flight` is the maximum number of open requests; `version` adds the protocol version to
        messages.
        """
        super().__init__(self._handle_lines, room=self._room, over=self._end, ladder=ladder)
        self._peer: Final = JsonRpcPeer[_OpenRequest[Frame]](
            self.write, in_flight=in_flight, version=version
        )
        self._conversations: Final[list[JsonRpcConversation[Frame]]] = []
        self._owners: Final[dict[str, JsonRpcConversation[Frame]]] = {}
        self._held: Final[dict[str, list[Frame | NoFrame]]] = {}
        self._waiting: Final[deque[tuple[_OpenRequest[Frame], Json]]] = deque()
        self._last_unanswered = 0
        self._unanswered: Final[dict[RpcId | None, trio.Event]] = {}
        self._handshake_done = greeting is None
        self._handshake_frame: Frame | None = None
        if greeting is not None:
            self._waiting.append((_OpenRequest(greeting[0]), greeting[1]))

    # --- what a subclass implements --------------------------------------------------------------

    def session_key(self, message: RpcRequest | RpcNotification) -> str | None:
        """Return the session that a message names; None if it names none. It must not raise."""
        raise NotImplementedError

    def make_frame(
        self, message: RpcRequest | RpcNotification, name: str
    ) -> Frame | NoFrame | None:
        """Return the frame of a message, None if it has none; see `decode_by_method`.

        `name` is our name for a request, for use in `reply`. A request without a frame, or with an
        `UntypedFrame`, is refused as unknown.
        """
        raise NotImplementedError

    def on_answer(
        self,
        conversation: JsonRpcConversation[Frame],
        method: str,
        answer: RpcResponse | RpcErrorResponse,
    ) -> Frame | None:
        """Return the frame of an answer, and `bind` the conversation if it names its session."""
        raise NotImplementedError

    def on_handshake(self, answer: RpcResponse | RpcErrorResponse) -> Frame | None:
        """Return the frame of the handshake's answer, which each conversation gets."""
        return None

    # --- conversations ---------------------------------------------------------------------------

    def attach(self, conversation: JsonRpcConversation[Frame], session: str | None = None) -> None:
        """Push frames into a conversation's driver from now on, also those about `session`.

        If the frame of the handshake, or the end of the child, has come before, it is pushed at
        once.

        Raises:
            RuntimeError: The session has a conversation already.
        """
        if session is not None:
            self.bind(conversation, session)
        self._conversations.append(conversation)
        if self._handshake_frame is not None:
            conversation.driver.feed((self._handshake_frame,), 0)
        if self.has_ended:
            conversation.driver.end()
        self._send_waiting()

    def bind(self, conversation: JsonRpcConversation[Frame], session: str) -> None:
        """Route messages about a session to a conversation, which can have several sessions.

        Raises:
            RuntimeError: Another conversation has the session.
        """
        if self._owners.setdefault(session, conversation) is not conversation:
            raise RuntimeError(f"session {session!r} has another conversation on this connection")
        conversation.session = conversation.session or session

    def detach(self, conversation: JsonRpcConversation[Frame]) -> None:
        """Push no more frames into a conversation's driver."""
        if conversation not in self._conversations:
            return
        self._conversations.remove(conversation)
        for name in [name for name, owner in self._owners.items() if owner is conversation]:
            del self._owners[name]
        for each in [each for each in self._waiting if each[0].conversation is conversation]:
            self._waiting.remove(each)
        for id_, ticket in list(self._peer.sent.items()):
            if ticket.conversation is conversation:
                self._peer.withdraw(id_)
        self._send_waiting()

    # --- sending ---------------------------------------------------------------------------------

    def request(self, by: JsonRpcConversation[Frame], method: str, params: Json) -> None:
        """Send a request for a conversation, as soon as possible."""
        if by not in self._conversations or self.has_ended:
            return
        ticket = _OpenRequest(method, by)
        if len(self._waiting) < MAX_WAITING_MESSAGES:
            self._waiting.append((ticket, params))
            self._send_waiting()
        else:
            self._refused(ticket)

    def notify(self, method: str, params: Json = None) -> None:
        """Send a notification at once."""
        self._peer.notify(RpcNotification(method, b"" if params is None else encode_json(params)))

    def request_unanswered(self, method: str, params: Json) -> None:
        """Send a request whose answer is dropped, such as the last one about a session."""
        self._last_unanswered += 1
        id_ = f"unanswered-{self._last_unanswered}"
        if self._peer.notify(RpcRequest(id_, method, encode_json(params))):
            self._unanswered[id_] = trio.Event()

    async def unanswered_done(self, limit: float) -> None:
        """Wait until the requests of `request_unanswered` are answered, at most `limit` seconds."""
        with trio.move_on_after(limit):
            await trio.lowlevel.checkpoint()
            for answered in list(self._unanswered.values()):
                await answered.wait()
        self._unanswered.clear()

    async def reply(self, answer: RpcResponse | RpcErrorResponse) -> None:
        """Answer a request of the agent, as soon as there is room."""
        await trio.lowlevel.checkpoint()
        if not self._peer.notify(answer):
            await self._peer.notify_later(answer)

    def _send_waiting(self) -> None:
        while self._waiting and (self._handshake_done or self._waiting[0][0].conversation is None):
            if not self._peer.slot_nowait():
                return
            ticket, params = self._waiting.popleft()
            if self._peer.send(ticket.method, params, ticket) is None:
                self._refused(ticket)

    def _refused(self, ticket: _OpenRequest[Frame]) -> None:
        for conversation, frames in self._resolve(
            ticket, RpcErrorResponse(None, BUSY, WRITE_BUFFER_FULL)
        ):
            conversation.driver.feed(frames, 0)

    # --- receiving -------------------------------------------------------------------------------

    def _handle_lines(self, lines: Sequence[Line]) -> None:
        reads: dict[JsonRpcConversation[Frame], list[Frame | NoFrame]] = defaultdict(list)
        for line in lines:
            for message in decode_rpc(line):
                for conversation, frames in self._route(message):
                    reads[conversation] += frames
        for conversation, frames in reads.items():
            conversation.driver.feed(frames, read_size(lines) // len(reads))
        self._send_waiting()

    def _route(self, message: DecodedRpc) -> list[Push[Frame]]:
        match message:
            case RpcResponse() | RpcErrorResponse():
                answered = self._unanswered.pop(message.id, None)
                if answered is not None:
                    answered.set()
                ticket = self._peer.resolve(message)
                return [] if ticket is None else self._resolve(ticket, message)
            case RpcRequest() | RpcNotification():
                return self._conversation_for(message)
            case _:
                return [(each, [message]) for each in self._conversations]

    def _resolve(
        self, ticket: _OpenRequest[Frame], answer: RpcResponse | RpcErrorResponse
    ) -> list[Push[Frame]]:
        conversation = ticket.conversation
        if conversation is None:
            self._handshake_done = True
            self._handshake_frame = self.on_handshake(answer)
            frames_of_all = () if self._handshake_frame is None else (self._handshake_frame,)
            return [(each, frames_of_all) for each in self._conversations]
        try:
            frame = self.on_answer(conversation, ticket.method, answer)
        except Exception as error:  # noqa: BLE001  # of this run and not of the reader
            conversation.driver.crash(error)
            return []
        frames: list[Frame | NoFrame] = [] if frame is None else [frame]
        # `on_answer` may have bound a session, whose held notifications follow the answer.
        for session in [name for name in self._held if self._owners.get(name) is conversation]:
            frames += self._held.pop(session)
        return [(conversation, frames)]

    def _conversation_for(self, message: RpcRequest | RpcNotification) -> list[Push[Frame]]:
        session = self.session_key(message)
        owner = None if session is None else self._owners.get(session)
        name = encode_json(message.id).decode() if isinstance(message, RpcRequest) else ""
        try:
            # A request without an owner is refused below, so it needs no frame.
            frame = None if name and owner is None else self.make_frame(message, name)
        except Exception as error:
            if owner is None:
                raise
            owner.driver.crash(error)
            frame = None
        if isinstance(message, RpcRequest):
            if owner is None or frame is None or isinstance(frame, UntypedFrame):
                self._peer.notify(RpcErrorResponse(message.id, NO_METHOD, "unknown request"))
            else:
                owner.open_requests[name] = message.id
        if frame is None:
            return []
        if owner is not None:
            return [(owner, [frame])]
        if session is None:
            return [(each, [frame]) for each in self._conversations]
        self._hold(session, frame)
        return []

    def _hold(self, session: str, frame: Frame | NoFrame) -> None:
        """Hold a frame about an unknown session, which may turn out to be a conversation's."""
        # No conversation waits for the name of its session: the session is a closed one.
        if all(each.session is not None for each in self._conversations):
            self._held.clear()
            return
        self._held.setdefault(session, []).append(frame)
        while sum(map(len, self._held.values())) > MAX_HELD_FRAMES:
            del self._held[next(iter(self._held))]

    async def _room(self) -> None:
        await trio.lowlevel.checkpoint()
        for each in tuple(self._conversations):
            await each.driver.room()

    def _end(self) -> None:
        for each in tuple(self._conversations):
            each.driver.end()


def decode_by_method(
    message: RpcRequest | RpcNotification, types: Mapping[str, type[T]]
) -> T | UntypedFrame:
    """Return the params of a message as the type of its method; `UntypedFrame` if it has none."""
    wanted = types.get(message.method)
    why = "unknown method"
    if wanted is not None:
        try:
            return msgspec.json.decode(message.params or b"{}", type=wanted)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            why = str(error)
    params = parse_json(message.params or b"null")
    shown = None if isinstance(params, UnreadableJson) else params
    return UntypedFrame({"method": message.method, "params": shown}, why)
