"""A mock of an adapter's `sdk`, played by a script: no child, no network, no sleep.

An adapter connects by its class attribute `connect`. A mock replaces this attribute; all other code
of the adapter runs unchanged. The script is an async function that receives each conversation the
adapter opens. It reads what the adapter sends, and sends frames. Where the test must act first, the
script waits at a gate.

    async def script(it: MockConversation[Outgoing, Frame]) -> None:
        await it.expect(Say("hi"))
        it.says(Text("hello", "m1"))
        await it.gate("half way")
        await it.expect(INTERRUPTED)
        it.says(TurnEnded("cancelled"))

    async with (
        MockSdk(script) as sdk,
        open_manager(adapters={"toy": with_sdk(ToyAdapter, sdk)}) as manager,
    ):
        session = await manager.open_session("toy")
        run = await session.submit("hi")
        await sdk.reached("half way")
        run.cancel()
        sdk.open_gate("half way")

An exception of a script leaves the mock's block without an exception group, and fails the test.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, Generic, TypeAlias, TypeVar, cast

import msgspec
import trio

from sessionmgr.adapter import Decision, Health

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from types import TracebackType
    from typing import Self

    from sessionmgr.adapter import Driver, Options, ProviderAdapter
    from sessionmgr.process import ExitReport

Outgoing = TypeVar("Outgoing")
Frame = TypeVar("Frame")
A = TypeVar("A", bound="ProviderAdapter")


class SentInterrupt(msgspec.Struct, frozen=True):
    """The adapter asked the agent to interrupt the turn."""


class SentAnswer(msgspec.Struct, frozen=True):
    """The adapter answered a request."""

    question: str
    decision: Decision


INTERRUPTED: Final = SentInterrupt()


class MockConversation(Generic[Outgoing, Frame]):
    """A mock conversation: the methods for the adapter, and those for the script."""

    def __init__(
        self, sdk: MockSdk[Outgoing, Frame], opening: object, driver: Driver[Frame]
    ) -> None:
        self.opening: Final = opening
        """The value with which the adapter opened it."""
        self.heard_so_far: Final[list[Outgoing | SentInterrupt | SentAnswer]] = []
        """Everything that the adapter has sent, in order."""
        self.is_closed = False
        """Whether the adapter has closed it; frames sent after that are discarded."""
        self.is_kept = False
        """Whether it was closed with `keep`, for another run."""
        self.times_cleared = 0
        """How often `discard` was called."""
        self._sdk: Final = sdk
        self._driver: Final = driver
        self._has_ended = False
        self._unheard: Final[deque[Outgoing | SentInterrupt | SentAnswer]] = deque()
        self._news = trio.Event()

    # --- for the adapter -------------------------------------------------------------------------

    async def send(self, message: Outgoing) -> None:
        """Receive a message of the adapter.

        Args:
            message: The message.
        """
        self._hear(message)
        await trio.lowlevel.checkpoint()

    async def interrupt(self) -> None:
        """Receive the adapter's request to interrupt the turn."""
        self._hear(INTERRUPTED)
        await trio.lowlevel.checkpoint()

    async def answer(self, question: str, decision: Decision) -> None:
        """Receive the adapter's answer to a request.

        Args:
            question: The name of the request.
            decision: The answer.
        """
        self._hear(SentAnswer(question, decision))
        await trio.lowlevel.checkpoint()

    def close(self, *, keep: bool = False) -> None:
        """Close the conversation, and record `keep`.

        Args:
            keep: Whether the session continues later.
        """
        self.is_closed, self.is_kept = True, keep

    async def discard(self) -> None:
        """Record that remaining processes were to be killed."""
        self.times_cleared += 1
        await trio.lowlevel.checkpoint()

    def _hear(self, message: Outgoing | SentInterrupt | SentAnswer) -> None:
        self.heard_so_far.append(message)
        self._unheard.append(message)
        self._news.set()

    # --- for the script --------------------------------------------------------------------------

    def says(self, *frames: Frame) -> None:
        """Send frames, as one read.

        Args:
            frames: The frames.
        """
        if not (self.is_closed or self._has_ended):
            self._driver.feed(frames, len(frames))

    def ends(self) -> None:
        """End the frames: the adapter's driver is informed that no more will come."""
        if not (self.is_closed or self._has_ended):
            self._has_ended = True
            self._driver.end()

    async def room(self) -> None:
        """Wait until there is room for more, as a connection does between two reads."""
        await self._driver.room()

    async def heard(self) -> Outgoing | SentInterrupt | SentAnswer:
        """Wait for the adapter's next message, and return it."""
        await trio.lowlevel.checkpoint()
        while not self._unheard:
            self._news = trio.Event()
            await self._news.wait()
        return self._unheard.popleft()

    async def expect(self, message: Outgoing | SentInterrupt | SentAnswer) -> None:
        """Wait for the adapter's next message, which must equal this one.

        Args:
            message: The expected message.

        Raises:
            AssertionError: The message is another one.
        """
        heard = await self.heard()
        assert heard == message, f"the adapter sent {heard!r} instead of {message!r}"

    async def gate(self, name: str) -> None:
        """Wait until the test opens the gate.

        Args:
            name: The name of the gate.
        """
        await self._sdk.pass_gate(name)


Script: TypeAlias = Callable[[MockConversation[Outgoing, Frame]], Awaitable[None]]


class MockConnection(Generic[Outgoing, Frame]):
    """A mock connection, with no process behind it."""

    facts: ExitReport | None = None
    """The exit report of the child; a mock has none unless a test sets it."""

    def __init__(self, sdk: MockSdk[Outgoing, Frame], spec: object) -> None:
        self.spec: Final = spec
        self.conversations: Final[list[MockConversation[Outgoing, Frame]]] = []
        self.is_closed = False
        self._sdk: Final = sdk
        self._hung_up = trio.Event()

    async def open(self, spec: object, driver: Driver[Frame]) -> MockConversation[Outgoing, Frame]:
        """Open a conversation, and start the script on it."""
        await trio.lowlevel.checkpoint()
        conversation = MockConversation(self._sdk, spec, driver)
        self.conversations.append(conversation)
        if self._hung_up.is_set():
            conversation.ends()
        self._sdk.play(conversation)
        return conversation

    async def wait_closed(self) -> None:
        """Wait until `hang_up` is called."""
        await self._hung_up.wait()

    def hang_up(self) -> None:
        """End the connection as if the agent had exited, with all its conversations."""
        self._hung_up.set()
        for each in self.conversations:
            each.ends()


class _Gate:
    def __init__(self) -> None:
        self.reached = trio.Event()
        self.opened = trio.Event()


class MockSdk(Generic[Outgoing, Frame]):
    """A mock `sdk` that plays a script. Use it as a block around the manager's."""

    def __init__(self, script: Script[Outgoing, Frame]) -> None:
        self.connections: Final[list[MockConnection[Outgoing, Frame]]] = []
        self._script: Final = script
        self._gates: Final[dict[str, _Gate]] = {}
        self._manager = trio.open_nursery()
        self._nursery: trio.Nursery | None = None

    async def __aenter__(self) -> Self:
        """Enter the block: start the nursery of the scripts."""
        self._nursery = await self._manager.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        """Cancel the scripts that still run.

        Raises:
            BaseException: The first exception of a script.
        """
        assert self._nursery is not None
        self._nursery.cancel_scope.cancel()
        try:
            return await self._manager.__aexit__(  # noqa: ASYNC102  # the scripts are cancelled
                exc_type, exc, traceback
            )
        except BaseExceptionGroup as group:
            raise _first(group) from None

    @property
    def conversations(self) -> list[MockConversation[Outgoing, Frame]]:
        """All opened conversations, in the order of their connections."""
        return [each for connection in self.connections for each in connection.conversations]

    @asynccontextmanager
    async def connect(self, spec: object) -> AsyncGenerator[MockConnection[Outgoing, Frame], None]:
        """Open a connection, as an adapter's `sdk` does.

        Args:
            spec: The specification of the connection.
        """
        await trio.lowlevel.checkpoint()
        connection = MockConnection(self, spec)
        self.connections.append(connection)
        try:
            yield connection
        finally:
            connection.is_closed = True

    def play(self, conversation: MockConversation[Outgoing, Frame]) -> None:
        """Start the script on a conversation.

        Args:
            conversation: The conversation.
        """
        assert self._nursery is not None, "use the MockSdk in an `async with` block"
        self._nursery.start_soon(self._script, conversation)

    # --- gates -----------------------------------------------------------------------------------

    async def reached(self, name: str) -> None:
        """Wait until a script waits at the gate.

        Args:
            name: The name of the gate.
        """
        await self._gate(name).reached.wait()

    def open_gate(self, name: str) -> None:
        """Open the gate for scripts that wait there now or later.

        Args:
            name: The name of the gate.
        """
        self._gate(name).opened.set()

    async def pass_gate(self, name: str) -> None:
        """Wait at the gate until it is open.

        Args:
            name: The name of the gate.
        """
        gate = self._gate(name)
        gate.reached.set()
        await gate.opened.wait()

    def _gate(self, name: str) -> _Gate:
        return self._gates.setdefault(name, _Gate())


def with_sdk(adapter: type[A], sdk: MockSdk[Outgoing, Frame]) -> type[A]:
    """Return a subclass of the adapter whose `connect` is a mock.

    Args:
        adapter: The class of the adapter.
        sdk: The mock.
    """
    return connecting_by(sdk.connect, adapter)


def connecting_by(connect: Callable[..., object], adapter: type[A]) -> type[A]:
    """Return the adapter with another `connect`, which needs no installed program and no login."""
    assert hasattr(adapter, "connect"), f"{adapter.__name__} has no attribute `connect`"
    replaced = {"connect": staticmethod(connect), "readiness": classmethod(_ready)}
    return cast("type[A]", type(f"Mocked{adapter.__name__}", (adapter,), replaced))


def _ready(_: type[ProviderAdapter], options: Options, env: Mapping[str, str], cwd: str) -> Health:
    return Health()


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the exception of a script, not the cancellations that it caused."""
    leaves: list[BaseException] = []
    for each in group.exceptions:
        nested = isinstance(each, BaseExceptionGroup)
        leaves.append(_first(cast("BaseExceptionGroup[BaseException]", each)) if nested else each)
    failed = [each for each in leaves if isinstance(each, AssertionError)]
    raised = [each for each in leaves if not isinstance(each, trio.Cancelled)]
    return (failed or raised or leaves)[0]
