"""What an adapter tells that cannot be costs its own run, or a figure, and nobody else."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from sessionmgr.model import (
    Event,
    FailureKind,
    MessageReceived,
    RunPaused,
    RunResult,
    RunStatus,
    SessionClosed,
    TokenUsageUpdated,
    ToolCallStarted,
    Usage,
)
from sessionmgr.provider import ProviderAdapter, RunContext
from sessionmgr.testing.scripted import Wait
from tests.manager.house import House, events, open_house


class Odd(ProviderAdapter):
    """Tells whatever a test wants it to."""

    name = "odd"
    tells: tuple[Event, ...] = ()

    async def run(self, run: RunContext) -> None:
        """Tell it, and be done."""
        await run.emit(*self.tells, MessageReceived(content="after"))
        await run.finish()


async def told(house: House, *tells: Event) -> tuple[RunResult, list[str]]:
    Odd.tells = tells
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
    async with open_house(others={"odd": Odd}) as house:
        spared = await house.start(Wait(seconds=10))
        result, names = await told(house, odd)
        assert result.failure is not None
        assert result.failure.kind is FailureKind.ADAPTER_CRASHED
        assert names[-1] == "run_failed"
        assert (await spared.result()).status is RunStatus.COMPLETED


@pytest.mark.parametrize("cost", [float("nan"), float("inf"), -1.0, 1e300])
@pytest.mark.parametrize("tokens", [3, -1, 2**63, 1.5])
async def test_figures_that_cannot_be_are_left_out_and_that_is_told(
    autojump_clock: MockClock, cost: float, tokens: Any
) -> None:
    async with open_house(others={"odd": Odd}) as house:
        used = TokenUsageUpdated(usage=Usage(input=tokens, output=2), cost=cost)
        result, names = await told(house, used)
        assert (result.status, result.text) == (RunStatus.COMPLETED, "after")
        assert result.usage == Usage(input=3 if tokens == 3 else 0, output=2)
        assert result.cost.usd is None
        assert "error_occurred" in names


async def test_an_end_takes_words_for_a_reason_and_nothing_else(autojump_clock: MockClock) -> None:
    async with open_house() as house:
        run = await house.start(Wait(seconds=10))
        await trio.sleep(1)
        nonsense: Any = object()
        with pytest.raises(TypeError, match="is a text"):
            run.cancel(nonsense)
        with pytest.raises(TypeError):
            await house.manager.cancel(run.id, detail=nonsense)
        with pytest.raises(TypeError):
            await house.manager.cancel_all(detail=nonsense)
        assert (await run.result()).status is RunStatus.COMPLETED
