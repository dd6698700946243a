"""Images of a run, stored as blobs."""

from __future__ import annotations

import hashlib
from pathlib import Path

from trio.testing import MockClock

from sessionmgr.manager import open_manager
from sessionmgr.model import FailureKind, Json
from sessionmgr.testing.mock_sdk import MockSdk, with_sdk
from sessionmgr_adapters.claude import ClaudeAdapter
from sessionmgr_adapters.claude.frames import (
    ClaudeMessage,
    ToolResult,
    UserFrame,
)
from tests.adapters.claude.mock_agent import (
    Talk,
    heard_prompt,
    idle,
    init,
    result,
    running,
    session_of,
    tool,
)
from tests.adapters.claude.mocked_manager import Mock, open_claude_manager, ran


async def test_an_image_that_cannot_be_sent_is_refused(tmp_path: Path) -> None:
    async def script(it: Talk) -> None:
        raise AssertionError("it was asked")

    async with open_claude_manager(MockSdk(script), tmp_path) as session:
        run = await session.submit("hi", images=("none.png",))
        failure = (await run.result()).failure
    assert failure is not None
    assert failure.kind is FailureKind.CONFIG_INVALID


async def test_an_image_that_a_tool_shows_is_kept_in_the_store(autojump_clock: MockClock) -> None:
    async def script(it: Talk) -> None:
        prompt = await heard_prompt(it)
        source: Json = {"type": "base64", "media_type": "image/png", "data": "aGVsbG8="}
        content: Json = [{"type": "image", "source": source}]
        shown = UserFrame(message=ClaudeMessage(content=[ToolResult("t1", content)]))
        it.says(running(), init(session_of(it)), tool("t1", "Read"), shown)
        it.says(result(prompt.uuid), idle())

    sdk: Mock = MockSdk(script)
    adapter = with_sdk(ClaudeAdapter, sdk)
    async with sdk, open_manager(adapters={"claude": adapter}) as manager:
        (image,) = (await ran(await manager.open_session("claude"))).images
        assert (image.media_type, image.bytes) == ("image/png", 5)
        assert image.blob == hashlib.sha256(b"hello").hexdigest()
        assert await manager.blob(image.blob) == b"hello"
