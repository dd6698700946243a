"""One script drives every agent: files, parallel calls, an image, a compaction."""

from typing import Any

import pytest

from sessionmgr.testing.model_server import (
    IsolatedEnvironment,
    ModelCall,
    ModelSay,
    ModelScript,
    ModelServer,
    RequestImage,
    prompt_with,
)
from tests.real.acp.agents import InstalledAcpAgent, installed_agent
from tests.real.acp.raw_client import RawAcpClient, open_raw_client

COMPACTING = ("copilot", "goose", "kimi-cli", "kimi-code", "opencode")
"""The agents with a command for it that keeps no replies beside the summary."""
PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture(params=COMPACTING)
def compacting_agent(request: pytest.FixtureRequest) -> InstalledAcpAgent:
    return installed_agent(request.param)


async def open_session(client: RawAcpClient, hermitage: IsolatedEnvironment) -> str:
    await client.initialize()
    opened = await client.request("session/new", cwd=str(hermitage.work), mcpServers=[])
    return str(opened["sessionId"])


async def test_one_script_drives_every_agent(
    acp_agent: InstalledAcpAgent, hermitage: IsolatedEnvironment, server: ModelServer
) -> None:
    file = hermitage.work / "made.txt"
    words = "red", "blue"
    script: ModelScript = [
        [ModelCall(tool="write", input={"path": str(file), "content": "one\n"})],
        [ModelCall(tool="read", input={"path": str(file)})],
        [ModelCall(tool="edit", input={"path": str(file), "old": "one", "new": "two"})],
        [ModelCall(tool="shell", input={"command": f"echo {word}"}) for word in words],
        [ModelSay(text="Made.")],
    ]
    text: dict[str, Any] = {"type": "text", "text": prompt_with(script)}
    image = {"type": "image", "mimeType": "image/png", "data": PNG}
    async with open_raw_client(acp_agent, hermitage) as client:
        session = await open_session(client, hermitage)
        ended = await client.request("session/prompt", sessionId=session, prompt=[text, image])
        assert ended["stopReason"] == "end_turn"
        assert client.text.endswith("Made.")
    assert file.read_text() == "two\n"
    turns = [each for each in server.log.asked if each.purpose == "turn"]
    assert len(turns) == len(script)
    assert "one" in turns[2].results[-1].text
    assert all(word in str(turns[4].body) for word in words)
    # goose sends images only to models that it knows.
    seen = () if acp_agent.id == "goose" else (RequestImage("image/png", PNG),)
    assert turns[0].images == seen


async def test_a_script_goes_on_after_a_compaction(
    compacting_agent: InstalledAcpAgent, hermitage: IsolatedEnvironment, server: ModelServer
) -> None:
    script: ModelScript = [[ModelSay(text=f"{word}.")] for word in ("one", "two", "three")]
    async with open_raw_client(compacting_agent, hermitage) as client:
        session = await open_session(client, hermitage)
        for prompt in prompt_with(script), "go on", "/compact", "go on":
            await client.prompt(session, prompt)
        assert client.text.endswith("three.")
    # Kimi Code compacts in the background, and may take the next prompt meanwhile.
    purposes = sorted(each.purpose for each in server.log.asked if each.purpose != "auxiliary")
    assert purposes == ["compaction", "turn", "turn", "turn"]
