"""Files of a project that a real Claude Code runs without asking, and the setting against it."""

from __future__ import annotations

import json
from pathlib import Path

import trio

from sessionmgr.adapter import ApprovalRequest, Decision, Deny
from sessionmgr.model import Json
from sessionmgr.testing.model_server import ModelCall, ModelSay
from sessionmgr.testing.model_server.script import ModelMove
from tests.real.harness import RealAgentHarness, text_of, until


async def run_in_a_project(house: RealAgentHarness, **options: Json) -> Path:
    """Run in plan mode; return the file to which the project's programs write.

    A server may write to it later: Claude Code does not wait for it.
    """
    kept = house.work.parent / "ran"
    hook = [{"hooks": [{"type": "command", "command": f"echo hook >> {kept}"}]}]
    settings = {
        "hooks": {"SessionStart": hook, "UserPromptSubmit": hook},
        "apiKeyHelper": f"echo helper >> {kept}",
        "enableAllProjectMcpServers": True,
    }
    server = {"command": "sh", "args": ["-c", f"echo server >> {kept}"]}
    (house.work / ".claude").mkdir()
    (house.work / ".claude" / "settings.json").write_text(json.dumps(settings))
    (house.work / ".mcp.json").write_text(json.dumps({"mcpServers": {"theirs": server}}))
    session = await house.session("plan")
    played = await house.play([[ModelSay(text="done")]], session, options=house.options(**options))
    assert played.result.status == "completed", played.result.failure
    return kept


async def test_a_project_has_its_programs_run_as_claude_code_does(
    any_house: RealAgentHarness,
) -> None:
    kept = await run_in_a_project(any_house)
    await until(lambda: {"hook", "server"} <= set(text_of(kept).split()))


async def test_a_project_of_which_no_settings_are_read_has_nothing_run(
    any_house: RealAgentHarness,
) -> None:
    assert text_of(await run_in_a_project(any_house, setting_sources=["user"])) == ""


async def test_an_edit_by_a_relative_path_is_asked_as_where_it_leads(
    any_house: RealAgentHarness,
) -> None:
    asked: list[ApprovalRequest] = []

    async def approve(request: ApprovalRequest) -> Decision:
        await trio.lowlevel.checkpoint()
        asked.append(request)
        return Deny(reason="no")

    written = {"file_path": "../made.txt", "content": "x"}
    script: list[list[ModelMove]] = [
        [ModelCall(tool="Write", input=written)],
        [ModelSay(text="done")],
    ]
    session = await any_house.session("accept_edits", approve=approve)
    await any_house.play(script, session, options=any_house.options())
    assert [each.paths for each in asked] == [(str(any_house.work.parent / "made.txt"),)]
