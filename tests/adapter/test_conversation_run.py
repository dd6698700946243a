"""The base class of drivers, on a mock SDK, in virtual time."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import ClassVar

import trio
from trio.testing import MockClock

from sessionmgr.adapter import Connection, Conversation, ProviderAdapter, RunContext
from sessionmgr.adapter.kit.conversation_run import ConversationRun
from sessionmgr.manager import Manager, open_manager
from sessionmgr.model import FailureKind, MessageReceived, MessageStreamed, RunStarted, RunStatus
from sessionmgr.testing.mock_sdk import MockConversation, MockSdk, with_sdk

Talk = MockConversation[str, str]


Line = Connection[object, str, Conversation[str]]


def connect(spec: object) -> AbstractAsyncContextManager[Line]:
    raise AssertionError("a mock takes its place in each test")


class EchoDriver(ConversationRun[str, str]):
    """Driver that emits each word as text; some words are orders."""

    async def begin(self) -> None:
        await self.conversation.send(self.run.prompt)

    def handle_frames(self, frames: Sequence[str]) -> None:
        for frame in frames:
            match frame:
                case "hello":
                    self.emit(RunStarted())
                case "crash":
                    raise ValueError("what is that?")
                case "ask":
                    self.start(self._reply, "asked")
                case "over":
                    self.finish()
                case _:
                    self.emit(MessageStreamed(delta=frame, message_id="m"))

    async def _reply(self, text: str) -> None:
        await self.conversation.send(text)

    def on_connection_lost(self) -> None:
        if self.run.prompt == "fragile":
            raise ValueError("what now?")
        super().on_connection_lost()

    def keeps_session(self) -> bool:
        return not self.is_broken


class EchoAdapter(ProviderAdapter):
    name = "echo"
    connect: ClassVar[Callable[[object], AbstractAsyncContextManager[Line]]] = staticmethod(connect)
    drivers: ClassVar[list[EchoDriver]] = []
    delay: ClassVar[float] = 0.0

    async def run(self, run: RunContext) -> None:
        driver = EchoDriver(run)
        self.drivers.append(driver)
        async with type(self).connect(None) as connection:
            conversation = await connection.open(None, driver)
            await trio.sleep(type(self).delay)
            if run.prompt == "stopped early":
                await driver.interrupt()
            await driver.run_conversation(conversation)
            if run.prompt == "stopped late":
                await driver.interrupt()
        await run.emit(MessageReceived(content="broken" if driver.is_broken else "well"))
        await run.finish()


@asynccontextmanager
async def opened(sdk: MockSdk[str, str], delay: float = 0.0) -> AsyncGenerator[Manager, None]:
    adapter = with_sdk(EchoAdapter, sdk)
    adapter.delay = delay
    async with sdk, open_manager(adapters={"echo": adapter}) as manager:
        yield manager


async def play(
    sdk: MockSdk[str, str], delay: float = 0.0, prompt: str = "hi"
) -> tuple[RunStatus, str, list[str]]:
    async with opened(sdk, delay) as manager:
        session = await manager.open_session("echo")
        run = await session.submit(prompt)
        kinds: list[str] = [event.type async for event in run]
        result = await run.result()
        if result.failure is not None:
            assert result.failure.kind is FailureKind.ADAPTER_CRASHED
            return result.status, result.failure.message, kinds
        return result.status, result.text, kinds


async def test_frames_become_events_in_their_order_until_it_is_over(
    autojump_clock: MockClock,
) -> None:
    async def script(it: Talk) -> None:
        await it.expect("hi")
        it.says("hello", "one", "two")
        it.says("three", "over", "four")
        it.says("five")

    sdk = MockSdk(script)
    status, text, kinds = await play(sdk)
    assert (status, text) == (RunStatus.COMPLETED, "well")
    # The frames of the read that ends the run are handled, and later ones are not.
    assert kinds.count("message_streamed") == 4
    conversation = sdk.conversations[0]
    assert (conversation.is_closed, conversation.is_kept) == (True, True)


async def test_a_crash_while_frames_are_taken_is_the_runs_and_not_the_readers(
    autojump_clock: MockClock,
) -> None:
    async def script(it: Talk) -> None:
        it.says("hello", "one", "crash", "two")
        it.says("three")  # nothing is raised here

    sdk = MockSdk(script)
    status, message, kinds = await play(sdk)
    assert status is RunStatus.FAILED
    assert "what is that?" in message
    assert kinds.count("message_streamed") == 1
    assert sdk.conversations[0].is_closed


async def test_a_crash_at_the_end_of_the_frames_is_the_runs_and_not_the_readers(
    autojump_clock: MockClock,
) -> None:
    async def script(it: Talk) -> None:
        await it.expect("fragile")
        it.says("hello")
        it.ends()  # nothing is raised here

    sdk = MockSdk(script)
    status, message, _ = await play(sdk, prompt="fragile")
    assert status is RunStatus.FAILED
    assert "what now?" in message
    assert sdk.conversations[0].is_closed


async def test_an_end_of_the_frames_leaves_it_broken_and_nothing_is_kept(
    autojump_clock: MockClock,
) -> None:
    async def script(it: Talk) -> None:
        await it.expect("hi")
        it.says("hello")
        it.ends()
        it.says("one")

    sdk = MockSdk(script)
    status, text, kinds = await play(sdk)
    assert (status, text) == (RunStatus.COMPLETED, "broken")
    assert "message_streamed" not in kinds
    assert (sdk.conversations[0].is_closed, sdk.conversations[0].is_kept) == (True, False)


async def test_frames_that_come_before_it_is_played_are_taken_at_once(
    autojump_clock: MockClock,
) -> None:
    async def script(it: Talk) -> None:
        it.says("hello", "ask", "one")
        assert await it.heard() in {"hi", "asked"}
        assert await it.heard() in {"hi", "asked"}
        assert trio.current_time() - began >= 10
        it.says("over")

    began = trio.current_time()
    sdk = MockSdk(script)
    status, text, _ = await play(sdk, delay=10)
    assert (status, text) == (RunStatus.COMPLETED, "well")
    assert set(sdk.conversations[0].heard_so_far) == {"hi", "asked"}


async def test_what_ends_before_it_is_played_is_not_begun(autojump_clock: MockClock) -> None:
    async def script(it: Talk) -> None:
        it.says("hello", "ask", "over")

    sdk = MockSdk(script)
    status, text, _ = await play(sdk, delay=10)
    assert (status, text) == (RunStatus.COMPLETED, "well")
    assert "hi" not in sdk.conversations[0].heard_so_far


async def test_an_interrupt_before_the_prompt_ends_it_and_one_after_the_end_says_nothing(
    autojump_clock: MockClock,
) -> None:
    async def script(it: Talk) -> None:
        it.says("hello")
        await it.expect("stopped late")
        it.says("over")

    for prompt, heard in (("stopped early", []), ("stopped late", ["stopped late"])):
        sdk = MockSdk(script)
        status, text, _ = await play(sdk, prompt=prompt)
        assert (status, text) == (RunStatus.COMPLETED, "well")
        assert sdk.conversations[0].heard_so_far == heard
