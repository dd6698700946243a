"""Runs on a real Codex, and later runs of their sessions."""

from __future__ import annotations

from sessionmgr.testing.model_server import ModelCall, ModelSay, ModelScript, ModelThink
from tests.real.harness import RealAgentHarness


async def test_a_prompt_is_answered_and_the_next_one_too(any_house: RealAgentHarness) -> None:
    script: ModelScript = [
        [
            ModelThink(text="I look."),
            ModelSay(text="Let me look.", deltas=3),
            ModelCall(tool="shell", input={"command": "echo it is $((40 + 2))"}),
        ],
        [ModelSay(text="It is done.", deltas=3)],
    ]
    session = await any_house.session("full_auto")
    played = await any_house.play(script, session)
    result = played.result
    assert (result.status, result.text) == ("completed", "It is done."), result
    assert result.tool_calls.count == {"shell": 1}
    assert {"message_streamed", "reasoning_received", "token_usage_updated"} <= {*played.types}
    assert result.usage.input > 0
    again = await any_house.goes_on(session)
    assert again.result.provider_session_id == result.provider_session_id
