"""Runs in plain text."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from sessionmgr.manager import open_manager
from sessionmgr.model import (
    FailureKind,
    RunStatus,
)
from sessionmgr.testing.mock_sdk import MockSdk
from sessionmgr_adapters.claude import ClaudeAdapter, ClaudeOptions, ClaudeTool
from tests.adapters.claude.mocked_manager import Mock, answer, open_claude_manager, ran
from tests.adapters.claude.run_contexts import add

PLAIN = """#!/bin/sh
case "$*" in *--version*) echo 2.1.327; exit;; *stream-json*) exit 9;; esac
read -r prompt
case "$prompt" in nothing*) exit 0;; esac
echo "heard: $prompt"
case "$prompt" in
  fail*) echo "Error: Session ID x is already in use." >&2; exit 1;;
  wait*) sleep 1000;;
esac
"""


def plain(place: Path, version: str = "2.1.327") -> ClaudeOptions:
    program = place / "claude"
    program.write_text(PLAIN.replace("2.1.327", version))
    program.chmod(0o755)
    return ClaudeOptions(command=(str(program),), text=True)


async def test_plain_text_is_a_run_of_its_own(tmp_path: Path) -> None:
    options = plain(tmp_path)
    async with open_manager(adapters={"claude": ClaudeAdapter}) as manager:
        session = await manager.open_session("claude", cwd=tmp_path)
        run = await session.submit("hi", options=options, system_prompt="short")
        done = await run.result()
        assert (done.status, done.text, done.exit_code) == (RunStatus.COMPLETED, "heard: hi", 0)
        failed = await (await session.submit("fail", options=options)).result()
        assert failed.failure is not None
        assert (failed.failure.kind, failed.text) == (FailureKind.SESSION_BUSY, "heard: fail")
        empty = await (await session.submit("nothing", options=options)).result()
        assert empty.failure is not None
        assert (empty.failure.kind, empty.failure.provider_code) == (
            FailureKind.PROVIDER_ERROR,
            "empty_reply",
        )
        run = await session.submit("wait", options=options)
        async for event in run:
            if event.type == "message_streamed":
                run.cancel()
        assert (await run.result()).status is RunStatus.CANCELLED


async def test_a_process_that_is_kept_for_a_session_is_gone_before_that_has_plain_text(
    tmp_path: Path,
) -> None:
    sdk: Mock = MockSdk(answer)  # type: ignore[arg-type]
    async with open_claude_manager(sdk, tmp_path) as session:
        await ran(session)
        assert not sdk.connections[0].is_closed
        options = plain(tmp_path)
        done = await (await session.submit("hi", options=options)).result()
        assert (done.status, done.text) == (RunStatus.COMPLETED, "heard: hi"), done.failure
        assert sdk.connections[0].is_closed


async def test_what_plain_text_does_not_have_is_refused_and_not_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    options = plain(tmp_path)
    async with open_manager(adapters={"claude": ClaudeAdapter}) as manager:
        session = await manager.open_session("claude", cwd=tmp_path)
        edits = await manager.open_session("claude", cwd=tmp_path, permission_mode="accept_edits")
        plans = await manager.open_session("claude", cwd=tmp_path, permission_mode="plan")
        with_tools = replace(options, tools=(ClaudeTool("add", "", add),))
        served = replace(options, mcp_servers={"a": {"command": "a"}})
        for refused, why in (
            (await session.submit("/x", options=options), "'/'"),
            (await session.submit("see @a.png", options=options), "'@a.png'"),
            (await session.submit("x", options=options, schema={}), "schema"),
            (await session.submit("x", options=options, images=("a.png",)), "images"),
            (await session.submit("x", options=replace(options, billing="api")), "billing"),
            (await session.submit("x", options=with_tools), "options.tools"),
            (await session.submit("x", options=served, tools_allowed=["mcp__a__b"]), "server"),
            (await edits.submit("x", options=options), "accept_edits"),
            (await plans.submit("x", options=options), "plan"),
        ):
            failure = (await refused.result()).failure
            assert failure is not None
            assert failure.kind is FailureKind.CONFIG_INVALID
            assert why in failure.message


async def test_an_old_one_is_refused_for_its_text_too(tmp_path: Path) -> None:
    options = plain(tmp_path, version="2.1.100")
    async with open_manager(adapters={"claude": ClaudeAdapter}) as manager:
        session = await manager.open_session("claude", cwd=tmp_path)
        failure = (await (await session.submit("hi", options=options)).result()).failure
    assert failure is not None
    assert "2.1.100" in failure.message
