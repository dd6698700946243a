"""Impossible events of an adapter cost its own run or a figure, and no other run."""

from collections.abc import Awaitable, Callable
from datetime import date
from typing import Any, TypeAlias, cast

import pytest
import trio
from trio.testing import MockClock

from sessionmgr.adapter import ApprovalRequest, ProviderAdapter, RunContext
from sessionmgr.model import (
    ErrorOccurred,
    Event,
    Failure,
    FailureKind,
    ImageReceived,
    Json,
    MessageReceived,
    MessageStreamed,
    ProcessExited,
    ReasoningStreamed,
    RunFailed,
    RunPaused,
    RunResult,
    RunStarted,
    RunStatus,
    SessionClosed,
    TokenUsageUpdated,
    ToolCallStarted,
    TurnCompleted,
    Usage,
)
from sessionmgr.testing.scripted_provider import Wait
from tests.manager.harness import ManagerHarness, events, open_harness

Say: TypeAlias = Callable[[RunContext], Awaitable[None]]


def fails(**fields: Any) -> Say:
    said: dict[str, Any] = {"kind": "provider_error", "message": "x", **fields}
    return lambda run: run.fail(Failure(**said))


def emits(event: Callable[..., Event], **fields: Any) -> Say:
    return lambda run: run.emit(event(**fields))


NO_EVENT: Any = "hello"

# An adapter's wrong event, and the crash message with the field and the value.
MISTAKES: dict[str, tuple[Say, str]] = {
    "a kind of failure": (fails(kind="custom"), "run_failed.failure.kind is 'custom'"),
    "a failure's message": (fails(message=5), "no len()"),
    "a failure that is none": (
        emits(RunFailed, failure="x"),
        "run_failed.failure is 'x': Expected",
    ),
    "an error without its failure": (
        emits(ErrorOccurred, failure=None),
        "error_occurred.failure is None",
    ),
    "a stop reason": (lambda run: run.finish(stop_reason=cast("str", 7)), "stop_reason is 7"),
    "a set as output": (lambda run: run.finish(structured=cast("Json", {1})), "structured is {1}"),
    "no message": (emits(MessageReceived, content=None), "message_received.content is None"),
    "bytes as a message": (emits(MessageReceived, content=b"ab"), "content is b'ab'"),
    "a date as a message": (emits(MessageReceived, content=date(2026, 1, 2)), "datetime.date"),
    "a number as a piece of text": (emits(MessageStreamed, delta=5), "message_streamed.delta is 5"),
    "no piece of thought": (emits(ReasoningStreamed, delta=None), "delta is None"),
    "the id of a piece of text": (
        emits(MessageStreamed, delta="x", message_id=5),
        "message_streamed.message_id is 5",
    ),
    "an object beside a piece of text": (
        emits(MessageStreamed, delta="x", raw=object()),
        "message_streamed cannot be written",
    ),
    "no usage": (emits(TokenUsageUpdated, usage=None), "token_usage_updated: None is not a Usage"),
    "a cost in words": (
        emits(TokenUsageUpdated, usage=Usage(), cost="1"),
        "must be a number, not '1'",
    ),
    "a provenance": (
        emits(TokenUsageUpdated, usage=Usage(), cost=1.0, provenance="x"),
        "token_usage_updated.provenance is 'x'",
    ),
    "open tasks": (emits(TurnCompleted, open_tasks="3"), "turn_completed.open_tasks is '3'"),
    "a session's id": (emits(RunStarted, provider_session_id=5), "provider_session_id is 5"),
    "a negotiation": (emits(RunStarted, negotiation="x"), "run_started.negotiation is 'x'"),
    "an image": (emits(ImageReceived, media_type=3, blob=4, bytes="x"), "media_type is 3"),
    "what is left": (emits(ProcessExited, left_running=5), "process_exited.left_running is 5"),
    "a number in what is left": (emits(ProcessExited, left_running=("a", 5)), "left_running"),
    "a tool": (emits(ToolCallStarted, tool_call_id="a", tool_name=5), "tool_name is 5"),
    "a set in a call": (
        emits(ToolCallStarted, tool_call_id="a", tool_name="b", tool_input={"of": [{1}]}),
        "tool_call_started.tool_input['of'][0] is {1}",
    ),
    "bytes in a call": (
        emits(ToolCallStarted, tool_call_id="a", tool_name="b", tool_input={"of": b"x"}),
        "tool_call_started.tool_input['of'] is b'x'",
    ),
    "no event": (lambda run: run.emit(NO_EVENT), "must report events, not 'hello'"),
    "a question": (
        lambda run: _ask(run, ApprovalRequest(tool_name=cast("str", 5))),
        "ApprovalRequest.tool_name is 5",
    ),
    "a set in a question": (
        lambda run: _ask(run, ApprovalRequest(tool_name="x", tool_input=cast("Json", {1}))),
        "ApprovalRequest.tool_input is {1}",
    ),
}


async def _ask(run: RunContext, request: ApprovalRequest) -> None:
    await run.ask(request)


class MistakenAdapter(ProviderAdapter):
    """An adapter that makes the mistake that its prompt names."""

    name = "mistaken"

    async def run(self, run: RunContext) -> None:
        """Make the mistake and return."""
        if run.prompt in MISTAKES:
            await MISTAKES[run.prompt][0](run)
        await run.emit(MessageReceived(content="well"))
        await run.finish()


@pytest.mark.parametrize("mistake", MISTAKES)
async def test_a_value_of_a_wrong_type_crashes_its_run_alone_and_is_named(
    autojump_clock: MockClock, mistake: str
) -> None:
    async with open_harness(others={"mistaken": MistakenAdapter}) as house:
        spared = await house.start(Wait(seconds=10))
        session = await house.manager.open_session("mistaken")
        run = await session.submit(mistake)
        behind = await session.submit("nothing")
        result = await run.result()
        assert result.failure is not None
        assert (result.status, result.failure.kind) == (
            RunStatus.FAILED,
            FailureKind.ADAPTER_CRASHED,
        )
        assert MISTAKES[mistake][1] in result.failure.message
        assert await house.manager.result(run.id) == result
        assert (await behind.result()).text == "well"
        assert (await spared.result()).status is RunStatus.COMPLETED


class Stubborn(ProviderAdapter):
    """An adapter that crashes when it is cancelled: alone, with other tasks, or not at all."""

    name = "stubborn"

    async def run(self, run: RunContext) -> None:
        """Wait, and crash."""
        await run.emit(RunStarted(provider_session_id="p"))
        if run.prompt == "alone":
            await self._wait(crash=True)
        async with trio.open_nursery() as nursery:
            if run.prompt == "beside":
                nursery.start_soon(trio.sleep_forever)
            await self._wait(crash=run.prompt != "not")

    async def _wait(self, *, crash: bool) -> None:
        try:
            await trio.sleep_forever()
        finally:
            if crash:
                raise LookupError("nothing there")


@pytest.mark.parametrize(
    ("how", "told"), [("alone", 1), ("in a nursery", 1), ("beside", 1), ("not", 0)]
)
async def test_a_crash_of_a_task_that_is_cut_is_recorded_beside_the_end_of_its_run(
    autojump_clock: MockClock, how: str, told: int
) -> None:
    async with open_harness(others={"stubborn": Stubborn}) as house:
        run = await (await house.manager.open_session("stubborn")).submit(how)
        await trio.sleep(1)
        run.cancel()
        assert (await run.result()).status is RunStatus.CANCELLED
        failures = [each.failure for each in await events(run) if isinstance(each, ErrorOccurred)]
        assert [(each.kind, each.message) for each in failures] == told * [
            (FailureKind.ADAPTER_CRASHED, "the adapter crashed: LookupError: nothing there")
        ]


class Careless(ProviderAdapter):
    """An adapter that reports values that are JSON, but of slightly wrong types."""

    name = "careless"

    async def run(self, run: RunContext) -> None:
        """Emit them."""
        lone: Any = {"half": "\ud83d", "large": 10**30, "tuple": (1, 2)}
        await run.emit(ToolCallStarted(tool_call_id="a", tool_name="b", tool_input=lone))
        lone["half"] = "changed later"
        kind: Any = "rate_limited"
        await run.fail(Failure(kind=kind, message="x"))


async def test_what_can_be_written_is_emitted_as_it_is_read_again(
    autojump_clock: MockClock,
) -> None:
    async with open_harness(others={"careless": Careless}) as house:
        run = await (await house.manager.open_session("careless")).submit("x")
        assert (await run.result()).status is RunStatus.RATE_LIMITED
        (call,) = [each for each in await events(run) if isinstance(each, ToolCallStarted)]
        assert call.tool_input == {"half": "\ufffd", "large": str(10**30), "tuple": [1, 2]}


class OddAdapter(ProviderAdapter):
    """An adapter that emits the events of the test."""

    name = "odd"
    tells: tuple[Event, ...] = ()

    async def run(self, run: RunContext) -> None:
        """Emit them and return."""
        await run.emit(*self.tells, MessageReceived(content="after"))
        await run.finish()


async def told(house: ManagerHarness, *tells: Event) -> tuple[RunResult, list[str]]:
    OddAdapter.tells = tells
    session = await house.manager.open_session("odd")
    beside = await session.submit("waits", metadata={})
    run = await session.submit("x")
    await beside.result()
    return await run.result(), [event.type for event in await events(run)]


@pytest.mark.parametrize(
    "odd",
    [
        SessionClosed(),
        RunPaused(),
        ToolCallStarted(tool_call_id=["no text"], tool_name="x"),  # type: ignore[arg-type]
    ],
    ids=lambda event: event.type,
)
async def test_what_is_not_its_to_tell_crashes_its_run_alone(
    autojump_clock: MockClock, odd: Event
) -> None:
    async with open_harness(others={"odd": OddAdapter}) as house:
        spared = await house.start(Wait(seconds=10))
        result, names = await told(house, odd)
        assert result.failure is not None
        assert result.failure.kind is FailureKind.ADAPTER_CRASHED
        assert names[-1] == "run_failed"
        assert (await spared.result()).status is RunStatus.COMPLETED


@pytest.mark.parametrize("cost", [float("nan"), float("inf"), -1.0, 1e300])
@pytest.mark.parametrize("tokens", [3, -1, 2**63, 1.5])
async def test_impossible_figures_are_left_out_and_that_is_recorded(
    autojump_clock: MockClock, cost: float, tokens: Any
) -> None:
    async with open_harness(others={"odd": OddAdapter}) as house:
        used = TokenUsageUpdated(usage=Usage(input=tokens, output=2), cost=cost)
        result, names = await told(house, used)
        assert (result.status, result.text) == (RunStatus.COMPLETED, "after")
        assert result.usage == Usage(input=3 if tokens == 3 else 0, output=2)
        assert result.cost.usd is None
        assert "error_occurred" in names


async def test_an_end_takes_words_for_a_reason_and_nothing_else(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        run = await house.start(Wait(seconds=10))
        await trio.sleep(1)
        nonsense: Any = object()
        with pytest.raises(TypeError, match="must be a string"):
            run.cancel(nonsense)
        with pytest.raises(TypeError):
            await house.manager.cancel(run.id, detail=nonsense)
        with pytest.raises(TypeError):
            await house.manager.cancel_all(detail=nonsense)
        assert (await run.result()).status is RunStatus.COMPLETED
