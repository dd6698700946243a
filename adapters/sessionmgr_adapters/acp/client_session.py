"""A session of the plain client, and its turns.

The connection's reader calls `feed`, `crash`, `end` and `room`.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, TypeAlias

import trio

from sessionmgr.adapter.kit import ChangeSignal
from sessionmgr.trio_util_types import move_on_when
from sessionmgr_adapters.acp import frames
from sessionmgr_adapters.acp.answers import elicitation_answer, permission_answer, text_block
from sessionmgr_adapters.acp.calls import AcpCalls
from sessionmgr_adapters.acp.errors import AcpClientError
from sessionmgr_adapters.acp.sdk import AcpReply
from sessionmgr_adapters.acp.updates import AcpUpdate, AgentChunk
from sessionmgr_adapters.acp.v1 import V1, AcpCall

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import Self

    from sessionmgr.model import Json
    from sessionmgr.wire import NoFrame
    from sessionmgr_adapters.acp.frames import AcpAnswer, AcpFrame
    from sessionmgr_adapters.acp.sdk import AcpConnection, AcpConversation

    Permit: TypeAlias = Callable[[frames.PermissionRequest], Awaitable[str | None]]
    ClientUpdate: TypeAlias = AcpUpdate | NoFrame

FULL: Final = 10_000
"""Updates that may wait to be read before the agent's output is no longer read."""
EARLIER: Final = 1000
"""Updates outside of a turn that are kept."""
START_LIMIT: Final = 60.0
CANCEL_LIMIT: Final = 5.0
"""Seconds that the agent has to end a cancelled turn before its session is closed."""
_NO_METHOD: Final = -32601


class AcpClientTurn:
    """A turn: iterate it for its updates; afterwards `end` has its stop reason and usage.

    Updates that could not be decoded are among them, as they came.
    """

    def __init__(self, session: AcpClientSession) -> None:
        self.end: frames.PromptEnded | None = None
        """How the turn ended; None until then."""
        self.error: Exception | None = None
        """Why it failed; iterating raises it."""
        self.waiting: Final[deque[ClientUpdate]] = deque()
        """The updates that were not read yet."""
        self._session: Final = session

    @property
    def is_over(self) -> bool:
        """Whether the agent has ended it; updates may be left to read."""
        return self.end is not None or self.error is not None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ClientUpdate:
        if not self.waiting:
            await self._session.wait_until(lambda: bool(self.waiting) or self.is_over)
        if self.waiting:
            self._session.note_room()
            return self.waiting.popleft()
        if self.error is not None:
            raise self.error
        raise StopAsyncIteration

    async def text(self) -> str:
        """Return the text of the agent's messages, once the turn has ended.

        Raises:
            AcpClientError: The turn failed.
        """
        texts = [
            update.content.text or "" async for update in self if isinstance(update, AgentChunk)
        ]
        return "".join(texts)


class AcpClientSession:
    """A session of the agent: see `AcpClient.session`."""

    def __init__(self, connection: AcpConnection, nursery: trio.Nursery, permit: Permit) -> None:
        self.id = ""
        """The agent's name for the session."""
        self.opened = frames.SessionOpened(method="")
        """Its modes, models and configuration options when it was opened."""
        self.earlier: Final[deque[ClientUpdate]] = deque(maxlen=EARLIER)
        """The last updates outside of a turn, such as those that a resumed session repeats."""
        self.conversation: AcpConversation
        self._connection: Final = connection
        self._nursery: Final = nursery
        self._permit: Final = permit
        self._calls: Final = AcpCalls(self._send)
        self._hello: Final = self._calls.expect_handshake()
        self._turn: AcpClientTurn | None = None
        self._is_leaving = False
        self._ended: Final = trio.Event()
        self._changed: Final = ChangeSignal()
        self._has_room: Final = ChangeSignal()
        self._asking: Final[dict[str, trio.CancelScope]] = {}

    # --- turns -----------------------------------------------------------------------------------

    def prompt(self, *content: str | dict[str, Json]) -> AcpClientTurn:
        """Send a prompt, and return its turn.

        Args:
            content: Texts, and other content blocks of the protocol.

        Raises:
            RuntimeError: A turn is running.
        """
        if self._turn is not None and not self._turn.is_over:
            raise RuntimeError(
                "a turn of this session is running; read it to its end, or cancel it"
            )
        turn = self._turn = AcpClientTurn(self)
        blocks = [text_block(each) if isinstance(each, str) else each for each in content]
        self._request(V1.prompt(self.id, blocks))
        if self._ended.is_set():
            self.end()
        return turn

    async def cancel(self) -> None:
        """Ask the agent to cancel the turn; it ends with the stop reason `cancelled`."""
        for scope in self._asking.values():
            scope.cancel()  # each is answered as cancelled, which the protocol requires
        await self.conversation.interrupt()

    async def set_mode(self, mode: str) -> None:
        """Set one of `opened.modes`.

        Args:
            mode: The id of the mode.

        Raises:
            AcpClientError: The agent refuses it, or exits.
        """
        await self.call(V1.set_mode(self.id, mode))

    async def set_option(self, option: str, value: str | bool) -> None:
        """Set one of `opened.options`.

        Args:
            option: The id of the option.
            value: Its value.

        Raises:
            AcpClientError: The agent refuses it, or exits.
        """
        await self.call(V1.set_option(self.id, option, value))

    async def call(self, call: AcpCall) -> AcpAnswer:
        """Send a request, and return its answer.

        Args:
            call: The request.

        Raises:
            AcpClientError: The agent refuses it, exits, or does not answer.
        """
        return await self._answer(call.method, lambda: self._calls.call(call))

    async def handshake(self) -> frames.Initialized:
        """Return the agent's answer to the handshake.

        Raises:
            AcpClientError: The agent refuses it, exits, or does not answer.
        """
        hello = await self._answer("initialize", self._hello.wait)
        assert isinstance(hello, frames.Initialized)
        return hello

    async def _answer(self, method: str, ask: Callable[[], Awaitable[AcpAnswer]]) -> AcpAnswer:
        answer: AcpAnswer | None = None
        with trio.move_on_after(START_LIMIT):
            async with move_on_when(self._ended.wait):
                answer = await ask()
        if isinstance(answer, frames.AcpRefusal):
            raise AcpClientError(f"{method}: {answer.message}", answer.code, answer.data)
        if answer is None:
            why = self._exit() if self._ended.is_set() else f"no answer within {START_LIMIT:g} s"
            raise AcpClientError(f"{method}: {why}")
        return answer

    def _exit(self) -> str:
        facts, tail = self._connection.facts, self._connection.tail.text().strip()
        code = None if facts is None else facts.exit_code
        return f"the agent has exited with {code}" + (f": {tail}" if tail else "")

    async def leave(self) -> None:
        """Cancel a turn that still runs, and close the session."""
        turn, self._is_leaving = self._turn, True
        self._has_room.notify()
        if turn is not None and not turn.is_over:
            with trio.move_on_after(CANCEL_LIMIT):
                await self.cancel()
                await self.wait_until(lambda: turn.is_over)
        for scope in self._asking.values():
            scope.cancel()
        self.conversation.close()

    async def wait_until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds, which is checked after each read."""
        await self._changed.wait_until(holds)

    def note_room(self) -> None:
        """Note that an update was read."""
        self._has_room.notify()

    # --- the connection's reader calls these -----------------------------------------------------

    def feed(self, frames: Sequence[AcpFrame], size: int) -> None:
        """Handle the frames of one read."""
        for each in frames:
            self._handle(each)
        self._changed.notify()

    def crash(self, error: Exception) -> None:
        """Fail the turn with an error of the connection."""
        if self._turn is not None:
            self._turn.error = error
        self._changed.notify()

    def end(self) -> None:
        """Fail the turn, because the agent has exited."""
        self._ended.set()
        if self._turn is not None and not self._turn.is_over:
            self._turn.error = AcpClientError(self._exit())
        self._changed.notify()
        self._has_room.notify()

    async def room(self) -> None:
        """Wait until few enough updates wait to be read."""
        turn = self._turn
        if turn is not None and len(turn.waiting) >= FULL and not self._is_leaving:
            await self._has_room.wait_until(
                lambda: len(turn.waiting) < FULL or self._is_leaving or self._ended.is_set()
            )

    def _handle(self, frame: AcpFrame) -> None:
        turn = self._turn
        match frame:
            case frames.SessionUpdate(update=update):
                self._keep(update)
            case frames.PermissionRequest():
                self._nursery.start_soon(self._permission, frame)
            case frames.ElicitationRequest(name=name):
                self._reply(AcpReply(name, elicitation_answer("cancel")))
            case frames.AgentRequest(name=name):
                self._reply(AcpReply(name, code=_NO_METHOD, message="unknown request"))
            case frames.RequestCancelled(name=name):
                if name in self._asking:
                    self._asking[name].cancel()
            case frames.PromptEnded():
                if turn is not None:
                    turn.end = frame
            case frames.AcpRefusal(method="session/prompt", message=why, code=code, data=data):
                if turn is not None:
                    turn.error = AcpClientError(f"session/prompt: {why}", code, data)
            case (
                frames.Initialized()
                | frames.SessionOpened()
                | frames.OptionsChanged()
                | frames.Acknowledged()
                | frames.AcpRefusal()
            ):
                self._calls.resolve(frame)
            case (
                frames.PromptAccepted()
                | frames.SessionsListed()
                | frames.SteeringAnswered()
                | frames.ElicitationCompleted()
                | frames.SilentAcpNotice()
            ):
                pass  # answers to requests that this client does not make, and empty notices
            case _:
                self._keep(frame)

    def _keep(self, update: ClientUpdate) -> None:
        turn = self._turn
        is_read = turn is not None and not turn.is_over and not self._is_leaving
        (turn.waiting if turn is not None and is_read else self.earlier).append(update)

    # --- messages --------------------------------------------------------------------------------

    async def _permission(self, request: frames.PermissionRequest) -> None:
        option: str | None = None
        with trio.CancelScope() as scope:
            self._asking[request.name] = scope
            option = await self._permit(request)
        del self._asking[request.name]
        await self.conversation.send(AcpReply(request.name, permission_answer(option)))

    def _reply(self, reply: AcpReply) -> None:
        self._nursery.start_soon(self.conversation.send, reply)

    async def _send(self, call: AcpCall) -> None:
        self._request(call)
        await trio.lowlevel.checkpoint()

    def _request(self, call: AcpCall) -> None:
        self.conversation.request(call.method, call.params)
