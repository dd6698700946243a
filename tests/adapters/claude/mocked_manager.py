"""A manager with the Claude adapter, and a script that replaces Claude Code."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from sessionmgr.manager import Clocks, SessionHandle, open_manager
from sessionmgr.model import Json, RunResult
from sessionmgr.testing.mock_sdk import MockSdk, with_sdk
from sessionmgr.wire import NoFrame
from sessionmgr_adapters.claude import ClaudeAdapter, ClaudeOptions
from sessionmgr_adapters.claude.frames import (
    ClaudeFrame,
)
from sessionmgr_adapters.claude.outgoing import ClaudeOutgoing, ClaudeUserMessage
from tests.adapters.claude.mock_agent import (
    HELLO,
    Talk,
    heard_prompt,
    idle,
    init,
    result,
    running,
    session_of,
    text,
)

Mock = MockSdk[ClaudeOutgoing, ClaudeFrame | NoFrame]


Script = Callable[[Talk], Awaitable[None]]


@asynccontextmanager
async def open_claude_manager(
    sdk: Mock, cwd: Path | None = None, **clocks: float
) -> AsyncGenerator[SessionHandle]:
    adapter = with_sdk(ClaudeAdapter, sdk)
    async with sdk, open_manager(adapters={"claude": adapter}, clocks=Clocks(**clocks)) as manager:
        yield await manager.open_session("claude", cwd=cwd or ".")


async def ran(session: SessionHandle, prompt: str = "hi", **options: object) -> RunResult:
    run = await session.submit(prompt, options=ClaudeOptions(**options))  # type: ignore[arg-type]
    return await run.result()


async def answer(it: Talk, words: str = "well", hello: Json = None) -> ClaudeUserMessage:
    """Answer one prompt, and no more."""
    prompt = await heard_prompt(it, hello)
    it.says(running(), init(session_of(it)), *text(words), result(prompt.uuid), idle())
    return prompt


def told(**known: Json) -> dict[str, Json]:
    return {**HELLO, **known}
