"""Requests of a real Codex other than approvals: their form, and their answers."""

from __future__ import annotations

import sys
from typing import Final

import pytest
import trio

from sessionmgr.adapter import Allow, ApprovalRequest, Decision, Deny
from sessionmgr.model import Json
from sessionmgr.testing.model_server import ModelCall, ModelSay
from tests.real.harness import PlayedRun, RealAgentHarness

ASKER: Final = """
import json, sys

def say(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
TOOL = {"name": "ask", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
for line in sys.stdin:
    heard = json.loads(line)
    match heard.get("method"):
        case "initialize":
            result = {"protocolVersion": heard["params"]["protocolVersion"]}
            about = {"serverInfo": {"name": "asker", "version": "1"}, "capabilities": {"tools": {}}}
            say({"id": heard["id"], "result": {**result, **about}})
        case "tools/list":
            say({"id": heard["id"], "result": {"tools": [TOOL]}})
        case "tools/call":
            called = heard["id"]
            params = {"message": "Your name?", "requestedSchema": FORM}
            say({"id": 900, "method": "elicitation/create", "params": params})
        case None if heard.get("id") == 900:
            text = json.dumps(heard["result"], sort_keys=True)
            say({"id": called, "result": {"content": [{"type": "text", "text": text}]}})
"""
QUESTION: Final[dict[str, Json]] = {
    "id": "q1",
    "header": "Colour",
    "question": "Which one?",
    "options": [{"label": "blue", "description": "b"}, {"label": "red", "description": "r"}],
}
WISH: Final[dict[str, Json]] = {"network": {"enabled": True}}
FEATURES: Final[dict[str, Json]] = {
    "features.default_mode_request_user_input": True,
    "features.request_permissions_tool": True,
}
# The model's call; the request; the answer; the model's input after that, and after a denial.
CASES: Final[dict[str, tuple[ModelCall, str, Allow, str, str]]] = {
    "question": (
        ModelCall(tool="request_user_input", input={"questions": [QUESTION]}),
        "request_user_input",
        Allow(tool_input={"answers": {"q1": "blue"}}),
        '{"answers":{"q1":{"answers":["blue"]}}}',
        '{"answers":{}}',
    ),
    "permissions": (
        ModelCall(tool="request_permissions", input={"reason": "I need it.", "permissions": WISH}),
        "request_permissions",
        Allow(),
        '"network":{"enabled":true}',
        '"network":null',
    ),
    "form": (
        ModelCall(tool="mcp__asker__ask", input={}),
        "mcp__asker",
        Allow(tool_input={"name": "Bob"}),
        '{"action": "accept", "content": {"name": "Bob"}}',
        '{"action": "decline"}',
    ),
}


async def play(
    house: RealAgentHarness, call: ModelCall, decision: Decision
) -> tuple[PlayedRun, ApprovalRequest, str]:
    """Return the request for a call, and the model's input after the decision."""
    asked: list[ApprovalRequest] = []

    async def approve(request: ApprovalRequest) -> Decision:
        await trio.lowlevel.checkpoint()
        asked.append(request)
        return decision

    asker = house.work.parent / "asker.py"
    asker.write_text(ASKER)
    servers: dict[str, Json] = {"asker": {"command": sys.executable, "args": [str(asker)]}}
    options = house.options(config=FEATURES, mcp_servers=servers)
    session = await house.session(approve=approve)
    played = await house.play([[call], [ModelSay(text="done")]], session, options=options)
    assert played.result.status == "completed", played.result.failure
    [request] = asked
    [result] = house.asked(played.result.provider_session_id)[-1].results
    return played, request, result.text


@pytest.mark.parametrize("case", CASES)
async def test_what_is_asked_is_answered_by_who_approves(
    any_house: RealAgentHarness, case: str
) -> None:
    call, name, answer, granted, refused = CASES[case]
    played, request, heard = await play(any_house, call, answer)
    assert request.tool_name == name
    assert granted in heard
    assert played.result.permission_denials == ()
    played, request, heard = await play(any_house, call, Deny(reason="no"))
    assert refused in heard
    assert [each.tool_name for each in played.result.permission_denials] == [name]


async def test_what_is_asked_can_be_read(house: RealAgentHarness) -> None:
    question, permissions, form = [
        (await play(house, call, Deny()))[1] for call, *_ in CASES.values()
    ]
    [asked] = _list(_dict(question.tool_input)["questions"])
    assert _dict(asked)["question"] == "Which one?"
    assert [_dict(each)["label"] for each in _list(_dict(asked)["options"])] == ["blue", "red"]
    assert _dict(permissions.tool_input)["network"] == {"enabled": True}
    assert permissions.reason == "I need it."
    assert form.reason == "Your name?"
    assert "name" in str(_dict(form.tool_input)["requestedSchema"])


def _dict(value: Json) -> dict[str, Json]:
    assert isinstance(value, dict)
    return value


def _list(value: Json) -> list[Json]:
    assert isinstance(value, list)
    return value


async def command_asked(house: RealAgentHarness, **more: Json) -> ApprovalRequest:
    """Return the request for a command that is allowed and run."""
    asked: list[ApprovalRequest] = []

    async def approve(request: ApprovalRequest) -> Decision:
        await trio.lowlevel.checkpoint()
        asked.append(request)
        return Allow()

    wish: dict[str, Json] = {"cmd": "touch made", "justification": "May I?", **more}
    call = ModelCall(
        tool="exec_command", input={**wish, "sandbox_permissions": "require_escalated"}
    )
    session = await house.session(approve=approve)
    played = await house.play([[call], [ModelSay(text="done")]], session, options=house.options())
    assert played.result.status == "completed", played.result.failure
    [request] = asked
    return request


async def test_a_command_is_asked_with_the_directory_that_it_runs_in(
    any_house: RealAgentHarness,
) -> None:
    request = await command_asked(any_house, workdir="..")
    assert request.tool_input == {"command": "touch made", "cwd": str(any_house.work.parent)}
    assert (request.tool_cwd, request.cwd) == (str(any_house.work.parent), str(any_house.work))
    assert (any_house.work.parent / "made").exists()


async def test_a_program_that_is_named_as_a_shell_is_not_run_as_what_is_shown(
    any_house: RealAgentHarness,
) -> None:
    program = any_house.work / "bash"
    program.write_text("#!/bin/sh\ntouch ran\n")
    program.chmod(0o755)
    request = await command_asked(any_house, shell=str(program))
    assert request.tool_input == {"command": "touch made", "cwd": str(any_house.work)}
    assert (any_house.work / "made").exists()
    assert not (any_house.work / "ran").exists()
