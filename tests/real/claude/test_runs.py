"""Runs on the real program, with old and new versions."""

from __future__ import annotations

import sys

import pytest

from sessionmgr.adapter import Allow, ApprovalRequest, Decision, Deny
from sessionmgr.adapter.kit import stdio_child
from sessionmgr.model import (
    ErrorOccurred,
    MessageReceived,
    RunStarted,
    RunStatus,
    ToolCallCompleted,
)
from sessionmgr.process.escalation import Escalation
from sessionmgr.testing.model_server import (
    ModelCall,
    ModelSay,
    ModelScript,
    ModelThink,
    prompt_with,
)
from sessionmgr_adapters.claude import driver
from tests.real.claude.harness import PATIENCE, RealAgentHarness


async def test_a_run_is_told_from_its_start_to_its_end(any_house: RealAgentHarness) -> None:
    script: ModelScript = [
        [
            ModelThink(text="hm"),
            ModelSay(text="I look.", deltas=3),
            ModelCall(tool="shell", input={"command": "ls"}),
        ],
        [ModelSay(text="There is nothing.", deltas=2)],
    ]
    played = await any_house.play(script)
    assert played.result.status is RunStatus.COMPLETED, played.result.failure
    assert played.result.text == "There is nothing."
    assert played.result.tool_calls.count == {"Bash": 1}
    assert played.result.usage.output > 0
    assert played.result.cost.usd
    (started,) = [each for each in played.events if isinstance(each, RunStarted)]
    assert str(started.cli_version) in str(any_house.program)
    assert started.credential == "api_key"
    assert played.types[1] == "run_started"
    assert "raw_received" not in played.types


async def test_runs_of_a_session_share_a_child_and_its_memory(house: RealAgentHarness) -> None:
    session = await house.session()
    first = await house.play([[ModelSay(text="one")]], session)
    second = await house.play([[ModelSay(text="two")]], session)
    assert second.result.provider_session_id == first.result.provider_session_id
    last = house.server.log.asked[-1]
    assert any("one" in str(item) for item in last.items)
    assert second.result.cost.usd


async def test_a_session_goes_on_in_another_child(any_house: RealAgentHarness) -> None:
    session = await any_house.session()
    options = any_house.options(keep=False)
    first = await any_house.play([[ModelSay(text="one")]], session, options=options)
    second = await any_house.play([[ModelSay(text="two")]], session, options=options)
    assert second.result.status is RunStatus.COMPLETED, second.result.failure
    assert second.result.provider_session_id == first.result.provider_session_id
    assert any("one" in str(item) for item in any_house.server.log.asked[-1].items)
    assert second.result.usage.input < 2 * first.result.usage.input  # and not the sum of both


async def test_what_is_asked_is_answered_and_may_be_rewritten(any_house: RealAgentHarness) -> None:
    asked: list[ApprovalRequest] = []

    async def approve(request: ApprovalRequest) -> Decision:
        asked.append(request)
        if "first" in str(request.tool_input):
            return Allow(tool_input={"command": "touch rewritten", "description": "d"})
        return Deny(reason="not that")

    script: ModelScript = [
        [ModelCall(tool="shell", input={"command": "touch first"})],
        [ModelCall(tool="shell", input={"command": "touch second"})],
        [ModelSay(text="done")],
    ]
    played = await any_house.play(script, approve=approve)
    assert [each.effect for each in asked] == ["command", "command"]
    assert sorted(each.name for each in any_house.work.iterdir()) == ["rewritten"]
    (denial,) = played.result.permission_denials
    assert denial.reason == "not that"
    assert len([each for each in played.events if isinstance(each, ToolCallCompleted)]) == 1
    assert played.result.status is RunStatus.COMPLETED


async def test_a_prompt_is_a_text_whatever_it_begins_with(house: RealAgentHarness) -> None:
    (house.work / "secret.txt").write_text("hidden contents")
    session = await house.session()
    run = await session.submit("/clear @secret.txt", options=house.options())
    result = await run.result()
    assert result.text == "You said: /clear @secret.txt"
    assert "hidden contents" not in str(house.server.log.asked[-1].body)


@pytest.mark.parametrize("prompt", ["/clear", "look at @secret.txt please"])
async def test_an_older_one_refuses_a_prompt_that_it_would_take_for_something_else(
    old_house: RealAgentHarness, prompt: str
) -> None:
    (old_house.work / "secret.txt").write_text("hidden contents")
    session = await old_house.session()
    run = await session.submit(prompt, options=old_house.options())
    result = await run.result()
    assert result.failure is not None
    assert "slash_commands" in result.failure.message
    assert not old_house.server.log.asked


async def test_a_file_is_added_to_a_prompt_where_that_is_let(any_house: RealAgentHarness) -> None:
    (any_house.work / "secret.txt").write_text("what was asked for")
    session, options = await any_house.session(), any_house.options(slash_commands=True)
    await (await session.submit("look at @secret.txt please", options=options)).result()
    assert "what was asked for" in str(any_house.server.log.asked[-1].body["messages"])


async def test_messages_of_sub_agents_are_told_apart(house: RealAgentHarness) -> None:
    errand = prompt_with([[ModelSay(text="found it")]], "Look.")
    script: ModelScript = [
        [ModelCall(tool="agent", input={"prompt": errand, "description": "look"})],
        [ModelSay(text="mine")],
    ]
    played = await house.play(script, options=house.options(background=False))
    assert played.result.text == "mine"
    assert played.result.tool_calls.count == {"Agent": 1}
    own = [
        each.content
        for each in played.events
        if isinstance(each, MessageReceived) and not each.parent_tool_call_id
    ]
    assert own == ["mine"]


NO_FRAMES = """#!/bin/sh
case "$*" in
  *--input-format*) echo "error: unknown option '--input-format=stream-json'" >&2; exit 1;;
esac
exec {program} "$@"
"""


async def test_plain_text_is_a_last_resort(house: RealAgentHarness) -> None:
    session = await house.session()
    first = await house.play([[ModelSay(text="framed")]], session)
    program = house.work.parent / "no-frames"
    program.write_text(NO_FRAMES.format(program=house.program))
    program.chmod(0o755)
    script: ModelScript = [
        [ModelCall(tool="shell", input={"command": "touch x"})],
        [ModelSay(text="one\ntwo")],
    ]
    plain = await house.play(script, session, options={"command": [str(program)]})
    assert plain.result.status is RunStatus.COMPLETED, plain.result.failure
    assert plain.result.text == "one\ntwo"
    assert plain.result.exit_code == 0
    assert not list(house.work.iterdir())  # requests are denied
    assert plain.result.provider_session_id == first.result.provider_session_id
    codes = [each.failure.provider_code for each in plain.events if isinstance(each, ErrorOccurred)]
    assert codes == ["fallback_knows_no_frames"]
    again = await house.play([[ModelSay(text="framed again")]], session)
    assert again.result.text == "framed again", again.result.failure


async def test_a_child_of_the_runs_own_is_told_of_to_its_end(
    house: RealAgentHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    patient = Escalation(polite=PATIENCE, term=2.0)  # it must exit by itself, however slowly
    monkeypatch.setattr(stdio_child, "LADDER", patient)
    session = await house.session()
    options = house.options(keep=False)
    played = await house.play([[ModelSay(text="x")]], session, options=options)
    assert played.result.status is RunStatus.COMPLETED
    async for event in house.manager.subscribe(session.id):
        if event.type == "process_exited":
            break
    assert (await house.manager.result(played.result.id)).exit_code == 0


HOLDS_BACK = """#!/bin/sh
# Says nothing of tools until there is a file called `go`.
{program} "$@" | {python} -uc '
import os, sys, time
for line in sys.stdin:
    while "tool_use" in line and not os.path.exists("go"):
        time.sleep(0.05)
    sys.stdout.write(line)
'
"""


async def test_what_tools_do_in_silence_is_told_from_the_sessions_own_record(
    house: RealAgentHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "SILENCE", 0.2)
    work = house.place("with_a.dot")
    program = house.work.parent / "holds-back"
    program.write_text(HOLDS_BACK.format(program=house.program, python=sys.executable))
    program.chmod(0o755)
    script: ModelScript = [
        [ModelSay(text="I look."), ModelCall(tool="shell", input={"command": "echo one"})],
        [ModelCall(tool="shell", input={"command": "echo two"})],
        [ModelSay(text="done")],
    ]
    session = await house.session("full_auto", cwd=work)
    run = await house.submit(session, script, options={"command": [str(program)]})
    told: list[str] = []
    async for event in run:
        if isinstance(event, ToolCallCompleted):
            told.append(str(event.tool_output))
            if told == ["one", "two"]:
                (work / "go").touch()
    assert (await run.result()).text == "done"
    assert told == ["one", "two"]
    assert (await run.result()).tool_calls.count == {"Bash": 2}
