"""The plain client with each agent: a turn, a tool that is allowed, and a cancel."""

from __future__ import annotations

import trio

from sessionmgr.testing.model_server import (
    IsolatedEnvironment,
    ModelCall,
    ModelHang,
    ModelSay,
    prompt_with,
)
from sessionmgr_adapters.acp import AgentChunk, allow_once, open_client
from tests.real.acp.agents import InstalledAcpAgent

PATIENCE = 120


async def test_a_turn_a_tool_and_a_cancel(
    acp_agent: InstalledAcpAgent, hermitage: IsolatedEnvironment
) -> None:
    tool = ModelCall(tool="shell", input={"command": "touch made"})
    uses = prompt_with([[tool], [ModelSay(text="It is done.")]], "Answer.")
    hangs = prompt_with([[ModelSay(text="Half of it.", deltas=2), ModelHang()]], "Answer.")
    with trio.fail_after(PATIENCE):
        async with (
            open_client(
                acp_agent.command,
                cwd=hermitage.work,
                env=acp_agent.environment(hermitage),
                permit=allow_once,
            ) as client,
            client.session() as session,
        ):
            assert (await session.prompt(uses).text()).endswith("It is done.")
            assert (hermitage.work / "made").exists()
            turn = session.prompt(hangs)
            async for update in turn:
                if isinstance(update, AgentChunk):
                    await session.cancel()
            assert turn.end is not None
            assert turn.end.stop_reason == "cancelled"
