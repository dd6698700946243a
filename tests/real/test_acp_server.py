"""Claude Code and Codex, served over the Agent Client Protocol."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from sessionmgr.adapter import find_adapter
from sessionmgr.testing.model_server import (
    ModelCall,
    ModelHang,
    ModelSay,
    ModelServer,
    prompt_with,
)
from sessionmgr.testing.model_server.isolated_env import IsolatedEnvironment
from tests.acp_server.client import Message, SchemaClient, serving
from tests.real.agent_programs import CLAUDE, CODEX, program_of
from tests.real.claude import harness as claude
from tests.real.codex import harness as codex
from tests.real.harness import RealAgentHarness


@pytest.fixture(params=["claude", "codex"])
def newest(request: pytest.FixtureRequest) -> tuple[str, Path]:
    name = str(request.param)
    return name, program_of(name, CLAUDE[0] if name == "claude" else CODEX[0])


@pytest.fixture
async def house(
    server: ModelServer, hermitage: IsolatedEnvironment, newest: tuple[str, Path]
) -> AsyncGenerator[RealAgentHarness, None]:
    name, program = newest
    async with AsyncExitStack() as stack:
        if name == "claude":
            env = {**hermitage.claude(retries=1), "IS_SANDBOX": "1"}
            opened = claude.open_house(server, program, hermitage.work, env)
        else:
            opened = codex.open_house(server, program, hermitage.work, hermitage.codex())
        yield await stack.enter_async_context(opened)


def script(session: str, *turns: Sequence[ModelSay | ModelCall | ModelHang]) -> Message:
    text = prompt_with([list(each) for each in turns])
    return {"sessionId": session, "prompt": [{"type": "text", "text": text}]}


async def opened(client: SchemaClient, house: RealAgentHarness, option: str) -> str:
    async def answer(message: Message) -> Message:
        return {"outcome": {"outcome": "selected", "optionId": option}}

    client.on_request = answer
    await client.initialize()
    return await client.new(house.work)


@pytest.mark.parametrize("option", ["allow", "reject"])
async def test_a_real_agent_asks_the_client(house: RealAgentHarness, option: str) -> None:
    adapter = find_adapter(house.provider)
    async with serving(adapter, manager=house.manager, options=house.options()) as client:
        session = await opened(client, house, option)
        escalation = {"sandbox_permissions": "require_escalated", "justification": "I must."}
        wish = escalation if house.provider == "codex" else {}
        call = ModelCall(tool="shell", input={"command": "touch made", **wish})
        turns: list[list[ModelSay | ModelCall]] = [
            [ModelSay(text="Let me."), call],
            [ModelSay(text="Done.")],
        ]
        end = await client.request("session/prompt", script(session, *turns))
        assert end["stopReason"] == "end_turn"
        assert client.text().replace("\n", "") == "Let me.Done."
        assert (house.work / "made").exists() == (option == "allow")
        (called,) = client.updates("tool_call")
        assert called["kind"] == "execute"
        status = [each["status"] for each in client.updates("tool_call_update") if "status" in each]
        assert status[-1] == ("completed" if option == "allow" else "failed")
        assert end["usage"]["totalTokens"] > 0
        first = len(client.seen)
        await client.request("session/close", {"sessionId": session})
        params: Message = {"sessionId": session, "cwd": str(house.work), "mcpServers": []}
        await client.request("session/load", params)
        await client.request("session/prompt", script(session, [ModelSay(text="On.")]))
        assert len(client.seen) > first
        assert client.text().endswith("Done.On.")


async def test_a_real_agent_is_cancelled(house: RealAgentHarness) -> None:
    adapter = find_adapter(house.provider)
    async with serving(adapter, manager=house.manager, options=house.options()) as client:
        session = await opened(client, house, "allow")
        prompt = await client.begin(
            "session/prompt", script(session, [ModelSay(text="So"), ModelHang()])
        )
        await client.wait_for(client.text)
        await client.notify("session/cancel", {"sessionId": session})
        assert (await client.answer(prompt))["stopReason"] == "cancelled"
