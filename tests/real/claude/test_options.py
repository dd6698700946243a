"""Options of a run reach a real Claude Code, without a restart where possible."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from sessionmgr.adapter import Allow, ApprovalRequest, Decision
from sessionmgr.model import FailureKind, Json, RunStatus
from sessionmgr.testing.model_server import ModelCall, ModelRefuse, ModelSay, ModelScript
from sessionmgr_adapters.claude.launch import EFFORTS
from tests.real.claude.harness import RealAgentHarness, programs_of

SCHEMA: dict[str, Json] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
}


def last(house: RealAgentHarness) -> dict[str, Json]:
    return dict(house.server.log.asked[-1].body)


async def test_model_and_effort_are_changed_in_the_running_child(
    any_house: RealAgentHarness,
) -> None:
    session = await any_house.session()
    script: ModelScript = [[ModelSay(text="x")]]
    await any_house.play(script, session, model="claude-sonnet-4-5", effort="low")
    assert last(any_house)["model"] == "claude-sonnet-4-5"
    first = programs_of(any_house)
    await any_house.play(script, session, model="claude-opus-4-5", effort="high")
    assert last(any_house)["model"] == "claude-opus-4-5"
    assert last(any_house).get("output_config") == {"effort": "high"}
    assert programs_of(any_house) == first


async def test_each_level_of_effort_is_known_to_it(any_house: RealAgentHarness) -> None:
    session = await any_house.session()
    for effort in EFFORTS:
        await any_house.play(
            [[ModelSay(text="x")]], session, model="claude-opus-5-5", effort=effort
        )
        assert last(any_house).get("output_config") == {"effort": effort}
    played = await any_house.play([[ModelSay(text="never")]], session, effort="bad")
    assert played.result.failure is not None
    assert played.result.failure.kind is FailureKind.CONFIG_INVALID
    assert "xhigh" in played.result.failure.message


async def test_an_unknown_model_is_refused(house: RealAgentHarness) -> None:
    session = await house.session()
    await house.play([[ModelSay(text="x")]], session)
    script: ModelScript = [[ModelRefuse(status=404)]]
    played = await house.play(script, session, model="no-such-model")
    assert played.result.failure is not None
    assert played.result.failure.kind is FailureKind.MODEL_NOT_FOUND


async def test_the_system_prompt_is_replaced_or_added_to(house: RealAgentHarness) -> None:
    await house.play([[ModelSay(text="x")]], system_prompt="You are a canary.")
    assert "You are a canary." in str(last(house)["system"])
    await house.play(
        [[ModelSay(text="x")]], options=house.options(append_system_prompt="Sing, too.")
    )
    assert "Sing, too." in str(last(house)["system"])


async def test_structured_output_is_what_was_asked_for(house: RealAgentHarness) -> None:
    session = await house.session()
    run = await session.submit("Who is it?", schema=SCHEMA, options=house.options())
    result = await run.result()
    assert result.status is RunStatus.COMPLETED, result.failure
    assert result.structured == {"name": "sample", "age": 0}


async def test_a_schema_that_no_command_line_takes_is_kept_to(any_house: RealAgentHarness) -> None:
    house = any_house
    schema: Json = {**SCHEMA, "description": "x" * 200_000}
    session = await house.session()
    run = await session.submit("Who is it?", schema=schema, options=house.options())
    result = await run.result()
    assert result.status is RunStatus.COMPLETED, result.failure
    assert result.structured == {"name": "sample", "age": 0}
    refused = await house.play([[ModelSay(text="no")]] * 3, schema=schema)
    assert refused.result.failure is not None
    assert refused.result.failure.kind is FailureKind.STRUCTURED_INVALID


async def test_settings_that_are_given_as_json_hold_and_stand_on_no_command_line(
    any_house: RealAgentHarness,
) -> None:
    house = any_house
    word = house.word()
    settings = json.dumps({"env": {"A_TOKEN": word, "SEEN": "from the settings"}})
    seen = house.work / "seen"
    command = "echo $SEEN > seen; cat /proc/[0-9]*/cmdline | tr '\\0' ' ' > lines"
    script: ModelScript = [
        [ModelCall(tool="shell", input={"command": command})],
        [ModelSay(text="done")],
    ]
    session = await house.session("full_auto")
    played = await house.play(script, session, options=house.options(settings=settings))
    assert played.result.status is RunStatus.COMPLETED, played.result.failure
    assert seen.read_text() == "from the settings\n"
    assert "--settings=" in (house.work / "lines").read_text()
    assert word not in (house.work / "lines").read_text()


async def test_a_run_without_the_output_that_was_asked_for_has_failed(
    house: RealAgentHarness,
) -> None:
    script: ModelScript = [[ModelSay(text="no")], [ModelSay(text="no")], [ModelSay(text="no")]]
    played = await house.play(script, schema=SCHEMA)
    assert played.result.status is RunStatus.FAILED
    assert played.result.failure is not None
    assert played.result.failure.kind is FailureKind.STRUCTURED_INVALID


async def test_a_fork_leaves_the_session_as_it_is(house: RealAgentHarness) -> None:
    session = await house.session()
    first = await house.play([[ModelSay(text="one")]], session)
    forked = await house.play([[ModelSay(text="two")]], session, options=house.options(fork=True))
    assert forked.result.status is RunStatus.COMPLETED, forked.result.failure
    assert forked.result.provider_session_id != first.result.provider_session_id
    assert any("one" in str(item) for item in house.server.log.asked[-1].items)


async def test_other_directories_are_worked_in(house: RealAgentHarness) -> None:
    other = house.work.parent / "other"
    other.mkdir()
    path = str(other / "x")
    script: ModelScript = [
        [ModelCall(tool="write", input={"path": path, "content": "x"})],
        [ModelSay(text="done")],
    ]
    session = await house.session("accept_edits")
    await house.play(script, session)
    assert not Path(path).exists()
    await house.play(script, session, directories=[str(other)])
    assert Path(path).exists()


async def test_what_must_be_started_anew_is_and_the_session_goes_on(
    house: RealAgentHarness,
) -> None:
    session = await house.session()
    first = await house.play([[ModelSay(text="one")]], session)
    second = await house.play([[ModelSay(text="two")]], session, system_prompt="Be brief.")
    assert second.result.status is RunStatus.COMPLETED, second.result.failure
    assert second.result.provider_session_id == first.result.provider_session_id
    assert any("one" in str(item) for item in house.server.log.asked[-1].items)
    assert len(programs_of(house)) <= 2


async def test_a_question_of_the_agent_is_put_and_answered(house: RealAgentHarness) -> None:
    questions: list[Json] = [
        {
            "question": "Which?",
            "header": "W",
            "multiSelect": False,
            "options": [
                {"label": "Red", "description": "r"},
                {"label": "Blue", "description": "b"},
            ],
        }
    ]

    async def approve(request: ApprovalRequest) -> Decision:
        assert request.tool_name == "AskUserQuestion"
        return Allow(tool_input={"questions": questions, "answers": {"Which?": "Blue"}})

    script: ModelScript = [
        [ModelCall(tool="AskUserQuestion", input={"questions": questions})],
        [ModelSay(text="thanks")],
    ]
    played = await house.play(script, approve=approve)
    assert played.result.text == "thanks"
    assert "Blue" in house.server.log.asked[-1].results[0].text


async def test_compaction_is_told(house: RealAgentHarness) -> None:
    session = await house.session()
    await house.play([[ModelSay(text="one")]], session)
    run = await session.submit("/compact", options=house.options(slash_commands=True))
    types = [event.type async for event in run]
    assert types.count("compaction_started") == 1
    assert types.count("compaction_completed") == 1
    assert (await run.result()).status is RunStatus.COMPLETED


async def test_tools_find_the_mark_of_their_tree(house: RealAgentHarness) -> None:
    script: ModelScript = [
        [ModelCall(tool="shell", input={"command": "echo $SESSIONMGR_TREE"})],
        [ModelSay(text="done")],
    ]
    await house.play(script, await house.session("full_auto"))
    assert house.server.log.asked[-1].results[0].text.strip()


SERVER = """
import json, sys
ADD = {"name": "add", "description": "Add.", "inputSchema": {"type": "object"}}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    found = {
        "initialize": {
            "protocolVersion": asked.get("params", {}).get("protocolVersion"),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "sums", "version": "1"},
        },
        "tools/list": {"tools": [ADD]},
        "tools/call": {"content": [{"type": "text", "text": "it is five"}]},
    }.get(asked["method"], {})
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": found}), flush=True)
"""


async def test_what_is_given_beside_the_prompt_reaches_it(house: RealAgentHarness) -> None:
    """MCP server, sub-agent, settings that allow something, and a log file."""
    server = house.work.parent / "server.py"
    server.write_text(SERVER)
    log = house.work.parent / "debug.log"
    agent: Json = {"description": "counts beans", "prompt": "You count beans."}
    allowed = json.dumps({"permissions": {"allow": ["mcp__sums__add"]}})
    options = house.options(
        mcp_servers={"sums": {"command": sys.executable, "args": [str(server)]}},
        strict_mcp=True,
        agents={"beans": agent},
        settings=allowed,
        setting_sources=[],
        allow_rules=["Bash(touch *)"],
        debug_file=str(log),
    )
    script: ModelScript = [
        [ModelCall(tool="mcp__sums__add", input={"a": 2})],
        [ModelCall(tool="shell", input={"command": "touch allowed"})],
        [ModelCall(tool="shell", input={"command": "touch"})],
        [ModelSay(text="done")],
    ]
    played = await house.play(script, options=options)
    assert played.result.text == "done", played.result.failure
    told = [each.text for asked in house.server.log.asked for each in asked.results]
    assert told[0] == "it is five"
    assert Path(house.work, "allowed").exists()
    assert "counts beans" in str(last(house)["messages"]) + str(last(house)["tools"])
    assert log.read_text()
