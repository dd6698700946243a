"""Requests that could only be ignored, or fulfilled in part, are refused."""

from __future__ import annotations

import pytest
from trio.testing import MockClock

from sessionmgr.model import FailureKind
from sessionmgr.testing.mock_sdk import MockSdk
from sessionmgr_adapters.claude import ClaudeOptions, ClaudeTool
from tests.adapters.claude.mock_agent import Talk
from tests.adapters.claude.mocked_manager import Mock, answer, open_claude_manager
from tests.adapters.claude.run_contexts import add

TAKEN = ClaudeOptions(tools=(ClaudeTool("add", "", add),), mcp_servers={"sessionmgr": {}})


@pytest.mark.parametrize(
    ("wishes", "why"),
    [
        ({"effort": "bad"}, "effort: unknown level 'bad'; known: low, medium, high"),
        ({"effort": ""}, "effort"),
        ({"options": TAKEN}, "mcp_servers: 'sessionmgr'"),
    ],
)
async def test_it_is_refused_by_its_name_before_anything_is_asked(
    autojump_clock: MockClock, wishes: dict[str, object], why: str
) -> None:
    async def script(it: Talk) -> None:
        await answer(it)

    sdk: Mock = MockSdk(script)
    async with open_claude_manager(sdk) as session:
        await (await session.submit("hi", effort="low")).result()
        failure = (await (await session.submit("hi", **wishes)).result()).failure  # type: ignore[arg-type]
    assert failure is not None
    assert failure.kind is FailureKind.CONFIG_INVALID
    assert why in failure.message
    assert len(sdk.conversations) == 1
