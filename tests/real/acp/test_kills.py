"""Kills of every agent and of its owner: the consequences, and that no process survives."""

from __future__ import annotations

import os
import signal
from typing import Final

import pytest
import trio

from sessionmgr.manager import RunHandle, SessionHandle
from sessionmgr.model import FailureKind, RunEnded, RunStatus
from sessionmgr.testing.model_server import (
    IsolatedEnvironment,
    ModelCall,
    ModelHang,
    ModelSay,
    ModelServer,
    prompt_with,
)
from tests.real.acp.agents import InstalledAcpAgent
from tests.real.acp.harness import AcpHarness, age_sessions, open_house, processes_of
from tests.real.harness import living, until, until_event, with_word

KILLED: Final = {FailureKind.KILLED_BY_OS, FailureKind.PROCESS_EXITED}


async def in_a_tool(house: AcpHarness) -> tuple[SessionHandle, RunHandle]:
    session, word = await house.session("full_auto"), house.word()
    shell = ModelCall(tool="shell", input={"command": f"touch begun; sleep 1000; : {word}"})
    run = await house.submit(session, prompt_with([[shell], [ModelHang()]], word))
    await until_event(run, "tool_call_started")
    await until(lambda: any("sleep 1000" in each for each in living(house.work)))
    return session, run


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGKILL], ids=lambda each: each.name)
async def test_an_agent_that_is_ended_in_a_tool_costs_its_turn_and_no_more(
    house: AcpHarness, acp_agent: InstalledAcpAgent, sign: signal.Signals
) -> None:
    session, run = await in_a_tool(house)
    [agent] = processes_of(house)
    os.kill(agent, sign)
    age_sessions(house.work.parent / "home")
    result = await run.result()
    assert result.status is RunStatus.FAILED
    assert result.failure is not None
    if sign is signal.SIGKILL:  # one that is asked to end may still refuse the prompt
        assert result.failure.kind in KILLED, result.failure
    assert result.failure.resumable
    assert len([each async for each in run if isinstance(each, RunEnded)]) == 1
    await until(lambda: not any("sleep 1000" in each for each in living(house.work)))
    again = (await house.play([[ModelSay(text="All is well.")]], session)).result
    assert again.status is RunStatus.COMPLETED, (again.failure, result.failure)
    assert again.text.endswith("All is well.")  # Copilot warns before it


async def test_a_manager_that_closes_ends_what_runs(
    server: ModelServer, hermitage: IsolatedEnvironment, acp_agent: InstalledAcpAgent
) -> None:
    env = acp_agent.environment(hermitage)
    async with open_house(server, acp_agent, hermitage.work, env) as house:
        _, run = await in_a_tool(house)
        before = trio.current_time()
    assert trio.current_time() - before < 30
    assert (await run.result()).status is RunStatus.CANCELLED
    assert with_word(house.mark) == []
