"""Permission modes of a kept process, for its session's next run."""

from __future__ import annotations

from pathlib import Path

from sessionmgr.manager import open_manager
from sessionmgr.model import Json, PermissionMode
from sessionmgr.testing.mock_sdk import MockSdk, with_sdk
from sessionmgr.wire import NoFrame
from sessionmgr_adapters.claude import ClaudeAdapter
from sessionmgr_adapters.claude.frames import ClaudeFrame
from sessionmgr_adapters.claude.launch import ClaudeSpec
from sessionmgr_adapters.claude.outgoing import ClaudeOutgoing, ControlRequest
from tests.adapters.claude.mock_agent import HELLO, Talk, heard_prompt, idle, result, text

Sdk = MockSdk[ClaudeOutgoing, ClaudeFrame | NoFrame]


async def agent(it: Talk) -> None:
    """Play one run, in the mode in which the process was started."""
    assert isinstance(it.opening, ClaudeSpec)
    prompt = await heard_prompt(it, {**HELLO, "current_permission_mode": it.opening.mode})
    it.says(*text("well"), result(prompt.uuid), idle())


async def play(sdk: Sdk, place: Path, *modes: str) -> None:
    """Play a run in each mode, in one session."""
    adapters = {"claude": with_sdk(ClaudeAdapter, sdk)}
    async with open_manager(adapters=adapters) as manager:
        session = await manager.open_session("claude", cwd=place)
        for mode in modes:
            run = await session.submit("say well", permission_mode=PermissionMode(mode))
            played = await run.result()
            assert played.status == "completed", played.failure


def launched(sdk: Sdk) -> list[str]:
    """Return the modes with which processes were started."""
    return [each.spec.mode for each in sdk.connections if isinstance(each.spec, ClaudeSpec)]


def requested(sdk: Sdk) -> list[tuple[str, dict[str, Json]]]:
    """Return the requests that processes received."""
    return [
        (each.subtype, each.fields)
        for conversation in sdk.conversations
        for each in conversation.heard_so_far
        if isinstance(each, ControlRequest)
    ]


async def test_one_that_was_started_without_questions_serves_no_other_mode(
    autojump_clock: object, tmp_path: Path
) -> None:
    async with MockSdk(agent) as sdk:
        await play(sdk, tmp_path, "full_auto", "dangerously_skip_permissions", "plan", "default")
        assert launched(sdk) == ["bypassPermissions", "plan", "default"]


async def test_one_that_plans_is_kept_to_it_and_serves_no_other_mode(
    autojump_clock: object, tmp_path: Path
) -> None:
    async with MockSdk(agent) as sdk:
        await play(sdk, tmp_path, "default", "plan", "plan", "default")
        assert launched(sdk) == ["default", "plan", "default"]
        kept = ["get_settings", "apply_flag_settings"]
        assert [what for what, _ in requested(sdk)] == [
            "initialize",
            "initialize",
            *kept,
            *kept,
            "initialize",
        ]
