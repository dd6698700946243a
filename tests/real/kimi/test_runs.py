"""Runs of a real Kimi: texts, reasoning, tools, images, functions, messages, sessions."""

from __future__ import annotations

import base64
from typing import Final

import trio

from sessionmgr.adapter import Allow, ApprovalRequest, Decision, Deny
from sessionmgr.adapter.kit import FunctionTool
from sessionmgr.model import (
    FailureKind,
    Json,
    MessageReceived,
    ReasoningReceived,
    RunStatus,
    TokenUsageUpdated,
    ToolCallCompleted,
    ToolCallFailed,
    ToolCallStarted,
)
from sessionmgr.testing.model_server import (
    ModelCall,
    ModelCut,
    ModelSay,
    ModelScript,
    ModelThink,
    ModelUse,
    UserPrompt,
    prompt_with,
)
from sessionmgr_adapters.kimi import KimiOptions
from tests.real.harness import RealAgentHarness, allow, see, until_event
from tests.real.kimi.harness import kimis_in

PIXEL: Final = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


def prompts(house: RealAgentHarness) -> list[str]:
    """Return the user's messages that the model has read last."""
    items = house.server.log.asked[-1].items
    return [each.text for each in items if isinstance(each, UserPrompt)]


def results(house: RealAgentHarness) -> list[str]:
    """Return the results of all tools, as the model has read them."""
    return [each.text for asked in house.server.log.asked for each in asked.results]


async def test_a_prompt_is_answered_with_reasoning_and_tools(house: RealAgentHarness) -> None:
    script: ModelScript = [
        [
            ModelThink(text="I look.", deltas=2),
            ModelSay(text="Let me look.", deltas=3),
            ModelCall(tool="shell", input={"command": "echo it is $((40 + 2)); exit 3"}),
            ModelCall(tool="write", input={"path": "note.txt", "content": "one"}),
            ModelUse(input=70, cached_input=40, output=10),
        ],
        [ModelSay(text="It is done.", deltas=2)],
    ]
    session = await house.session("full_auto")
    played = await house.play(script, session)
    assert played.result.status is RunStatus.COMPLETED, played.result
    assert played.result.text == "It is done."
    texts = [each.content for each in played.events if isinstance(each, MessageReceived)]
    assert texts == ["Let me look.", "It is done."]
    thoughts = [each.content for each in played.events if isinstance(each, ReasoningReceived)]
    assert thoughts == ["I look."]
    begun = [each for each in played.events if isinstance(each, ToolCallStarted)]
    assert [each.tool_name for each in begun] == ["Shell", "WriteFile"]
    assert begun[0].tool_input == {"command": "echo it is $((40 + 2)); exit 3"}
    [failed] = [each for each in played.events if isinstance(each, ToolCallFailed)]
    assert failed.tool_output == "Command failed with exit code: 3.\nit is 42\n"
    [done] = [each for each in played.events if isinstance(each, ToolCallCompleted)]
    assert "successfully" in str(done.tool_output)
    assert (house.work / "note.txt").read_text() == "one"
    [first, _] = [each.usage for each in played.events if isinstance(each, TokenUsageUpdated)]
    assert (first.input, first.cached_input, first.output) == (70, 40, 10)
    assert kimis_in(house.work) == 1
    await house.goes_on(session)
    assert kimis_in(house.work) == 1  # the process was kept


async def test_a_session_is_resumed_by_another_process(house: RealAgentHarness) -> None:
    link = house.work.parent / "link"
    link.symlink_to(house.work)
    session = await house.session(cwd=link)
    options = house.options(keep=False)
    first = await house.play([[ModelSay(text="one")]], session, text="Remember.", options=options)
    second = await house.play([[ModelSay(text="two")]], session, options=options)
    assert first.result.provider_session_id == second.result.provider_session_id
    prompts = [
        each.text for each in house.server.log.asked[-1].items if isinstance(each, UserPrompt)
    ]
    assert any("Remember." in each for each in prompts)


async def test_a_session_that_kimi_does_not_have_is_not_begun(house: RealAgentHarness) -> None:
    session = await house.session()
    await house.play([[ModelSay(text="one")]], session, options=house.options(keep=False))
    for each in (house.work.parent / "kimi" / "sessions").rglob("context.jsonl"):
        each.unlink()
    played = await house.play([[ModelSay(text="two")]], session)
    assert played.result.failure is not None
    assert played.result.failure.kind is FailureKind.SESSION_NOT_FOUND, played.result.failure


async def test_two_sessions_run_at_once(house: RealAgentHarness) -> None:
    gates = [house.gate(), house.gate()]
    runs = [
        await house.submit(
            await house.session(), [[ModelSay(text="one two", deltas=2, until=str(gate))]]
        )
        for gate in gates
    ]
    for run in runs:
        await until_event(run, "message_streamed")
    for gate in reversed(gates):
        gate.touch()
    assert [(await run.result()).text for run in runs] == ["one two"] * 2
    assert kimis_in(house.work) == 2


async def test_the_model_gets_the_images_of_a_prompt(house: RealAgentHarness) -> None:
    (house.work / "pixel.png").write_bytes(PIXEL)
    played = await house.play([[ModelSay(text="A pixel.")]], images=["pixel.png"])
    assert played.result.text == "A pixel.", played.result
    assert base64.b64encode(PIXEL).decode() in str(house.server.log.asked[-1])
    (house.work / "no.png").write_text("no image")
    refused = await house.play([[ModelSay(text="?")]], images=["no.png"])
    assert refused.result.failure is not None
    assert refused.result.failure.kind is FailureKind.CONFIG_INVALID


async def test_the_model_calls_functions_of_the_caller(house: RealAgentHarness) -> None:
    called: list[Json] = []

    async def weigh(given: dict[str, Json]) -> Json:
        await trio.lowlevel.checkpoint()
        called.append(given)
        if given.get("what") == "air":
            raise ValueError("too light")
        return {"kilograms": 3}

    schema: dict[str, Json] = {
        "type": "object",
        "properties": {"what": {"type": "string"}},
        "required": ["what"],
    }
    tool = FunctionTool(name="weigh", description="Weighs.", call=weigh, schema=schema)
    script: ModelScript = [
        [ModelCall(tool="weigh", input={"what": "lead"})],
        [ModelCall(tool="weigh", input={"what": "air"})],
        [ModelSay(text="Weighed.")],
    ]
    run = await house.submit(
        await house.session(),
        script,
        options=KimiOptions(command=(str(house.program),), tools=(tool,)),
    )
    played = await see(run)
    assert played.result.text == "Weighed.", played.result
    assert called == [{"what": "lead"}, {"what": "air"}]
    told = results(house)
    assert '{"kilograms":3}' in told[0]
    assert "ValueError: too light" in told[1]
    clash = FunctionTool(name="Shell", description="?", call=weigh)
    options = KimiOptions(command=(str(house.program),), tools=(clash,))
    refused = await house.play(script, await house.session(), options=options)
    assert refused.result.failure is not None
    assert "conflicts with builtin tool" in refused.result.failure.message


async def test_a_request_is_approved_or_rejected_with_the_reason(house: RealAgentHarness) -> None:
    asked: list[ApprovalRequest] = []

    async def approve(request: ApprovalRequest) -> Decision:
        await trio.lowlevel.checkpoint()
        asked.append(request)
        if request.effect == "edit":
            return Allow()
        reason = "Use the other tool." if len(asked) == 1 else None
        return Deny(reason=reason)

    run = ModelCall(tool="shell", input={"command": "touch no"})
    write = ModelCall(tool="write", input={"path": "yes", "content": "x"})
    script: ModelScript = [[run], [write], [run], [ModelSay(text="Done.")]]
    played = await house.play(script, await house.session(approve=approve))
    assert played.result.text == "Done.", played.result  # no denial has ended the turn
    assert [each.effect for each in asked] == ["command", "edit", "command"]
    assert asked[0].tool_input == {"command": "touch no"}
    assert asked[1].paths == (str(house.work / "yes"),)
    assert ((house.work / "no").exists(), (house.work / "yes").exists()) == (False, True)
    told = results(house)
    assert "User feedback: Use the other tool." in told[0]
    assert [each.tool_name for each in played.result.permission_denials] == ["Shell", "Shell"]


async def test_a_question_reaches_the_user_only_if_that_is_wanted(house: RealAgentHarness) -> None:
    options: Json = [{"label": "red", "description": ""}, {"label": "blue", "description": ""}]
    question: Json = {"question": "Which?", "header": "C", "options": options}
    call = ModelCall(tool="AskUserQuestion", input={"questions": [question]})
    script: ModelScript = [[call], [ModelSay(text="Asked.")]]

    async def approve(request: ApprovalRequest) -> Decision:
        await trio.lowlevel.checkpoint()
        assert request.tool_name == "AskUserQuestion"
        given = request.tool_input
        assert isinstance(given, dict)
        return Allow(tool_input={**given, "answers": {"Which?": "blue"}})

    asking = house.options(questions=True)
    played = await house.play(script, await house.session(approve=approve), options=asking)
    assert played.result.text == "Asked.", played.result
    assert '"Which?": "blue"' in results(house)[-1]
    await house.play(script, await house.session(approve=approve))
    offered = [each.name for each in house.server.log.asked[-1].tools]
    assert "AskUserQuestion" not in offered
    assert "EnterPlanMode" not in offered


async def test_the_steps_of_a_turn_can_be_limited(house: RealAgentHarness) -> None:
    call = ModelCall(tool="shell", input={"command": "true"})
    session = await house.session("full_auto")
    played = await house.play([[call], [call], [call]], session, max_turns=2)
    assert played.result.failure is not None
    assert played.result.failure.kind is FailureKind.BUDGET_EXCEEDED
    assert "maximum number of steps" in played.result.failure.message
    await house.goes_on(session)


async def test_a_message_to_the_turn_is_heard_once(house: RealAgentHarness) -> None:
    for tool in (False, True):
        gate = house.gate()
        waits = f"until [ -e {gate} ]; do sleep 0.05; done"
        script: ModelScript = [[ModelSay(text="one two three", deltas=3, until=str(gate))]]
        if tool:
            script = [
                [ModelCall(tool="shell", input={"command": waits})],
                [ModelSay(text="I heard")],
            ]
        run = await house.submit(await house.session("full_auto"), script)
        await until_event(run, "tool_call_started" if tool else "message_streamed")
        follow_up = await run.append("use blue")
        gate.touch()
        assert follow_up.accepted
        played = await see(run)
        assert played.result.status is RunStatus.COMPLETED
        assert follow_up.run.id == run.id
        heard = [each for each in prompts(house) if "use blue" in each]
        assert len(heard) == 1


async def test_a_sub_agent_works_within_its_call(house: RealAgentHarness) -> None:
    shell = ModelCall(tool="shell", input={"command": "touch sub"})
    long = "It is done, and this is what I did. " * 10  # Kimi asks for more if it is short
    inner = prompt_with([[ModelSay(text="I look."), shell], [ModelSay(text=long)]])
    agent = {"description": "d", "prompt": inner, "subagent_type": "coder"}
    script: ModelScript = [[ModelCall(tool="Agent", input=agent)], [ModelSay(text="All done.")]]
    played = await house.play(script, await house.session(approve=allow))
    assert played.result.text == "All done.", played.result
    assert (house.work / "sub").exists()
    [begun] = [
        each
        for each in played.events
        if isinstance(each, ToolCallStarted) and each.tool_name == "Agent"
    ]
    own = begun.tool_call_id
    messages = [each for each in played.events if isinstance(each, MessageReceived)]
    texts = [each.content for each in messages if each.parent_tool_call_id == own]
    assert texts == ["I look.", long]
    calls = [each for each in played.events if isinstance(each, ToolCallStarted)]
    assert [each.tool_name for each in calls if each.parent_tool_call_id == own] == ["Shell"]


async def test_a_context_is_compacted(house: RealAgentHarness) -> None:
    call = ModelCall(tool="shell", input={"command": "true"})
    script: ModelScript = [[call, ModelUse(input=90_000)], [ModelSay(text="after")]]
    played = await house.play(script, await house.session("full_auto"))
    assert played.result.text == "after", played.result
    found = [each for each in played.types if each.startswith("compaction")]
    assert found == ["compaction_started", "compaction_completed"]


async def test_the_last_message_is_not_shown_twice(house: RealAgentHarness) -> None:
    script: ModelScript = [
        [ModelSay(text="Half of", whole=False, deltas=2), ModelCut(times=1), ModelSay(text=" it.")]
    ]
    played = await house.play(script)
    assert played.result.status is RunStatus.COMPLETED, played.result
    texts = [each.content for each in played.events if isinstance(each, MessageReceived)]
    assert texts == [played.result.text]
