"""Claude Code with a model that plays a script, through its pipes alone."""

import msgspec
import pytest

from sessionmgr.testing.model_server import (
    ModelCall,
    ModelFault,
    ModelHang,
    ModelLimits,
    ModelRefuse,
    ModelReply,
    ModelSay,
    ModelScript,
    ModelServer,
    ModelThink,
    ModelUsageLimit,
    ModelUse,
    prompt_with,
)
from tests.real.agent_process import AgentProgram, Line

PRINT = ("-p", "--output-format=stream-json", "--verbose")
TALK = (*PRINT, "--input-format=stream-json")


def user(prompt: str) -> Line:
    return {"type": "user", "message": {"role": "user", "content": prompt}}


async def test_a_prompt_is_answered_and_a_tool_runs(
    claude: AgentProgram, server: ModelServer
) -> None:
    script: ModelScript = [
        [
            ModelThink(text="I look."),
            ModelSay(text="Let me look.", deltas=3),
            ModelCall(tool="shell", input={"command": "echo it is $((40 + 2))"}),
        ],
        [ModelSay(text="It is done."), ModelUse(input=7, output=5)],
    ]
    done = await claude.run(*PRINT, prompt_with(script, "Look."))
    [result] = done.of_type("result")
    assert (done.code, result["result"], result["is_error"]) == (0, "It is done.", False)
    assert [each.reply for each in server.log] == [0, 1]
    [tool] = server.log.asked[1].results
    assert (tool.text, tool.failed) == ("it is 42", False)


async def test_a_file_is_written_and_read(claude: AgentProgram, server: ModelServer) -> None:
    file = str(claude.work / "note.txt")
    script: ModelScript = [
        [ModelCall(tool="write", input={"path": file, "content": "one\n"})],
        [ModelCall(tool="edit", input={"path": file, "old": "one", "new": "two"})],
        [ModelCall(tool="read", input={"path": file})],
        [ModelSay(text="Read.")],
    ]
    done = await claude.run(*PRINT, "--permission-mode=acceptEdits", prompt_with(script))
    assert done.code == 0
    assert (claude.work / "note.txt").read_text() == "two\n"
    assert "two" in server.log.asked[-1].results[0].text


async def test_a_refusal_is_retried(claude: AgentProgram, server: ModelServer) -> None:
    script: ModelScript = [[ModelRefuse(status=529, times=1), ModelSay(text="At last.")]]
    done = await claude.run(*PRINT, prompt_with(script))
    [result] = done.of_type("result")
    assert result["result"] == "At last."
    assert [each.status for each in server.log] == [529, 200]
    assert any(line.get("subtype") == "api_retry" for line in done.lines)


async def test_an_error_in_mid_stream_is_asked_for_again_as_a_whole(
    claude: AgentProgram, server: ModelServer
) -> None:
    script: ModelScript = [
        [ModelSay(text="Half", whole=False), ModelFault(times=1), ModelSay(text="and half.")]
    ]
    done = await claude.run(*PRINT, prompt_with(script))
    [result] = done.of_type("result")
    assert result["result"].endswith("and half.")
    assert [each.asked.stream for each in server.log if each.asked] == [True, False]


async def test_what_was_said_before_an_error_stays_and_is_gone_on_from(
    claude: AgentProgram, server: ModelServer
) -> None:
    script: ModelScript = [
        [ModelSay(text="Said."), ModelFault(times=1), ModelSay(text="And more.")]
    ]
    done = await claude.run(*PRINT, prompt_with(script))
    [result] = done.of_type("result")
    if claude.version == "2.1.197":  # this version gives up
        assert (done.code, result["is_error"]) == (1, True)
    else:
        assert (done.code, result["result"]) == (0, "And more.")
        assert [each.asked.stream for each in server.log if each.asked] == [True, True]


async def test_a_key_that_is_not_known_ends_in_an_error(
    claude: AgentProgram, server: ModelServer
) -> None:
    done = await claude.run(
        *PRINT, prompt_with([[ModelRefuse(status=401, message="Who are you?")]])
    )
    [result] = done.of_type("result")
    assert (done.code, result["is_error"], result["api_error_status"]) == (1, True, 401)
    assert {each.status for each in server.log} == {401}


async def test_output_by_a_schema_is_made_from_the_schema(
    claude: AgentProgram, server: ModelServer
) -> None:
    schema = {
        "type": "object",
        "properties": {"answer": {"type": "integer", "minimum": 3}, "why": {"type": "string"}},
        "required": ["answer", "why"],
    }
    written = msgspec.json.encode(schema).decode()
    done = await claude.run(*PRINT, f"--json-schema={written}", "How many?")
    [result] = done.of_type("result")
    assert result["structured_output"] == {"answer": 3, "why": "sample"}
    assert len(server.log) == 1


async def test_two_turns_of_one_session_have_scripts_of_their_own(
    claude: AgentProgram, server: ModelServer
) -> None:
    async with claude.open(*TALK) as talk:
        for number in range(2):
            call = ModelCall(tool="shell", input={"command": f"echo {number}"})
            await talk.say(user(prompt_with([(call,), (ModelSay(text=f"turn {number}"),)])))
            assert (await talk.until_type("result"))["result"] == f"turn {number}"
        await talk.say(user("And now?"))
        assert (await talk.until_type("result"))["result"] == "You said: And now?"
        assert await talk.close() == 0
    assert [each.reply for each in server.log] == [0, 1, 0, 1, 2]


async def test_a_hanging_model_is_left_by_an_interrupt(
    claude: AgentProgram, server: ModelServer
) -> None:
    async with claude.open(*TALK) as talk:
        await talk.say(user(prompt_with([[ModelHang()]])))
        await talk.until(lambda line: line.get("subtype") == "init")
        await server.log.wait_for_total(1)
        interrupt = {"subtype": "interrupt"}
        await talk.say({"type": "control_request", "request_id": "1", "request": interrupt})
        assert (await talk.until_type("result"))["subtype"] == "error_during_execution"
        await talk.say(user("Still there?"))
        assert (await talk.until_type("result"))["result"] == "You said: Still there?"
        assert await talk.close() == 0
    assert [each.ending for each in server.log] == ["left", "whole"]


async def test_a_message_to_a_running_turn_reaches_the_model(
    claude: AgentProgram, server: ModelServer
) -> None:
    call = ModelCall(tool="shell", input={"command": "until [ -e go ]; do sleep 0.05; done"})
    async with claude.open(*TALK) as talk:
        await talk.say(user(prompt_with([[call], [ModelSay(text="Heard.")]])))
        await talk.until_type("assistant")
        # Requests are answered in order: an answer shows that all earlier output has arrived.
        await talk.say(user("Look here, too."))
        mode = {"subtype": "set_permission_mode", "mode": "default"}
        await talk.say({"type": "control_request", "request_id": "1", "request": mode})
        await talk.until_type("control_response")
        (claude.work / "go").touch()
        assert (await talk.until_type("result"))["result"] == "Heard."
        assert await talk.close() == 0
    assert [each.reply for each in server.log] == [0, 1]
    assert server.log.asked[1].prompt == "Look here, too."


async def test_a_script_goes_on_after_a_compaction(
    claude: AgentProgram, server: ModelServer
) -> None:
    call = ModelCall(tool="shell", input={"command": "echo one"})
    async with claude.open(*TALK) as talk:
        await talk.say(
            user(prompt_with([[call], [ModelSay(text="first")], [ModelSay(text="second")]]))
        )
        assert (await talk.until_type("result"))["result"] == "first"
        await talk.say(user("/compact"))
        await talk.until_type("result")
        await talk.say(user("Go on."))
        assert (await talk.until_type("result"))["result"] == "second"
        assert await talk.close() == 0
    assert [each.purpose for each in server.log.asked] == ["turn", "turn", "compaction", "turn"]


async def test_a_subagent_plays_the_script_of_its_prompt(
    claude: AgentProgram, server: ModelServer
) -> None:
    claude.environment["CLAUDE_CODE_DISABLE_BACKGROUND_TASKS"] = "1"
    shell = ModelCall(tool="shell", input={"command": "echo from below"})
    below = prompt_with([[shell], [ModelSay(text="I am below.")]])
    call = ModelCall(tool="agent", input={"prompt": below, "description": "below"})
    done = await claude.run(*PRINT, prompt_with([[call], [ModelSay(text="It was below.")]]))
    [result] = done.of_type("result")
    assert result["result"] == "It was below."
    assert "I am below." in server.log.asked[-1].results[0].text


async def test_a_session_is_resumed_by_another_process(
    claude: AgentProgram, server: ModelServer
) -> None:
    first = await claude.run(*PRINT, prompt_with([[ModelSay(text="one")], [ModelSay(text="two")]]))
    session = first.of_type("result")[0]["session_id"]
    second = await claude.run(*PRINT, f"--resume={session}", "And?")
    assert second.of_type("result")[0]["result"] == "two"
    assert {each.session for each in server.log.asked} == {session}


@pytest.mark.parametrize("used_up", [False, True])
async def test_limits_of_a_subscription_are_told(
    claude: AgentProgram, server: ModelServer, used_up: bool
) -> None:
    del claude.environment["ANTHROPIC_API_KEY"]
    claude.environment["CLAUDE_CODE_OAUTH_TOKEN"] = "sk-ant-oat01-scripted"
    resets_at = 1_900_000_000
    warning = ModelLimits(used=0.92, resets_at=resets_at, status="allowed_warning")
    reply: ModelReply = (
        [ModelUsageLimit(resets_at=resets_at)] if used_up else [warning, ModelSay(text="Nearly.")]
    )
    done = await claude.run(*PRINT, prompt_with([reply]))
    [told] = [each["rate_limit_info"] for each in done.of_type("rate_limit_event")]
    assert told["status"] == ("rejected" if used_up else "allowed_warning")
    assert told["resetsAt"] == resets_at
    assert done.code == int(used_up)
