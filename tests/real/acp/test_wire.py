"""Every agent through its pipes alone; the end of its input ends it."""

import pytest

from sessionmgr.testing.model_server import (
    IsolatedEnvironment,
    ModelCall,
    ModelSay,
    ModelScript,
    prompt_with,
)
from tests.real.acp.agents import InstalledAcpAgent, installed_agent
from tests.real.acp.contract import contract_of
from tests.real.acp.raw_client import open_raw_client

ANSWERS_TO_2 = {"claude-agent-acp": 2, "codex-acp": 2, "goose": 2}
"""What agents answer to an offer of version 2, if not 1; goose says 2 and speaks 1."""


@pytest.fixture(params=["claude-agent-acp", "codex-acp"])
def agent_of_version_2(request: pytest.FixtureRequest) -> InstalledAcpAgent:
    return installed_agent(request.param)


async def test_a_prompt_is_answered(
    acp_agent: InstalledAcpAgent, hermitage: IsolatedEnvironment
) -> None:
    async with open_raw_client(acp_agent, hermitage) as client:
        initialized = await client.initialize()
        assert initialized["protocolVersion"] == 1
        assert initialized["agentInfo"]["version"] == acp_agent.version
        opened = await client.request("session/new", cwd=str(hermitage.work), mcpServers=[])
        said = prompt_with([[ModelSay(text="It is as the script says.")]], "Answer.")
        ended = await client.prompt(opened["sessionId"], said)
        assert (ended["stopReason"], client.text) == ("end_turn", "It is as the script says.")
        assert contract_of(1).faults(client.traffic) == []


async def test_a_command_runs_in_the_working_directory(
    acp_agent: InstalledAcpAgent, hermitage: IsolatedEnvironment
) -> None:
    command = "echo made here > made.txt"
    script: ModelScript = [
        [ModelCall(tool="shell", input={"command": command})],
        [ModelSay(text="Made.")],
    ]
    async with open_raw_client(acp_agent, hermitage) as client:
        await client.initialize()
        opened = await client.request("session/new", cwd=str(hermitage.work), mcpServers=[])
        ended = await client.prompt(opened["sessionId"], prompt_with(script))
        assert (ended["stopReason"], client.text) == ("end_turn", "Made.")
        assert (hermitage.work / "made.txt").read_text() == "made here\n"
        assert contract_of(1).faults(client.traffic) == []


async def test_an_offer_of_version_2_is_answered(
    acp_agent: InstalledAcpAgent, hermitage: IsolatedEnvironment
) -> None:
    async with open_raw_client(acp_agent, hermitage) as client:
        initialized = await client.initialize(2)
        assert initialized["protocolVersion"] == ANSWERS_TO_2.get(acp_agent.id, 1)
        speaks_it = "info" in initialized and "capabilities" in initialized
        assert speaks_it == (acp_agent.id in ("claude-agent-acp", "codex-acp"))


async def test_a_prompt_is_answered_in_version_2(
    agent_of_version_2: InstalledAcpAgent, hermitage: IsolatedEnvironment
) -> None:
    async with open_raw_client(agent_of_version_2, hermitage) as client:
        await client.initialize(2)
        opened = await client.request("session/new", cwd=str(hermitage.work))
        said = prompt_with([[ModelSay(text="It is as the script says.")]], "Answer.")
        accepted = await client.prompt(opened["sessionId"], said)
        assert accepted["messageId"]
        while not [each for each in client.updates("state_update") if each["state"] == "idle"]:
            await client.until(lambda line: line.get("method") == "session/update")
        assert client.text == "It is as the script says."
        assert contract_of(2).faults(client.traffic) == []
