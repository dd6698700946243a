"""Edits of protected files, which have further effects."""

from __future__ import annotations

from pathlib import Path

import pytest
from trio.testing import MockClock

from sessionmgr.adapter import Allow
from sessionmgr.model import Json
from sessionmgr.testing.mock_sdk import MockSdk, SentAnswer
from sessionmgr_adapters.claude.frames import HostRequest, HostRequestBody
from sessionmgr_adapters.claude.outgoing import ClaudeOutgoing
from tests.adapters.claude.mock_agent import (
    Talk,
    heard_prompt,
    idle,
    init,
    result,
    running,
    session_of,
)
from tests.adapters.claude.mocked_manager import Mock, open_claude_manager


async def is_granted(cwd: Path, path: str, why: str | None = None) -> bool:
    """Whether a run that accepts edits accepts this one without an `approve` function."""
    answers: list[ClaudeOutgoing | object] = []

    async def script(it: Talk) -> None:
        prompt = await heard_prompt(it)
        given: Json = {"file_path": path, "content": "x"}
        question = HostRequestBody(
            subtype="can_use_tool",
            tool_name="Write",
            input=given,
            tool_use_id="t",
            decision_reason_type=why,
        )
        it.says(running(), init(session_of(it)), HostRequest(request_id="q", request=question))
        answers.append(await it.heard())
        it.says(result(prompt.uuid), idle())

    sdk: Mock = MockSdk(script)
    async with open_claude_manager(sdk, cwd) as session:
        run = await session.submit("hi", permission_mode="accept_edits")
        await run.result()
    (answer,) = answers
    assert isinstance(answer, SentAnswer)
    return isinstance(answer.decision, Allow)


@pytest.mark.parametrize(
    ("path", "granted"),
    [
        ("src/a.py", True),
        (".gitignore", True),
        ("claude/settings.json", True),
        (".claude/worktrees/one/src/a.py", True),
        (".claude/worktrees/one/.git/hooks/pre-commit", False),
        (".claude/settings.json", False),
        (".CLAUDE/Settings.json", False),
        ("inner/.git/hooks/pre-commit", False),
        (".vscode/tasks.json", False),
        (".bashrc", False),
        ("inner/.MCP.json", False),
        ("link/hooks/pre-commit", False),
        (".envrc", False),
    ],
)
async def test_what_may_be_run_one_day_is_no_edit_that_is_granted_unasked(
    autojump_clock: MockClock, tmp_path: Path, path: str, granted: bool
) -> None:
    work = tmp_path / ".claude" / "here"
    (work / ".git").mkdir(parents=True)
    (work / "link").symlink_to(".git")
    (work / ".envrc").symlink_to("innocent")
    assert await is_granted(work, str(work / path)) is granted


async def test_what_claude_code_would_ask_about_in_any_mode_is_asked_about(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    assert not await is_granted(tmp_path, str(tmp_path / "new.rc"), "safetyCheck")
    assert await is_granted(tmp_path, str(tmp_path / "new.rc"), "mode")
