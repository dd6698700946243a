"""Cancels at the worst moments: the run ends at once, with all its processes."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from sessionmgr.manager import RunHandle, SessionHandle
from sessionmgr.model import Json
from sessionmgr.testing.model_server import (
    ModelCall,
    ModelSay,
    ModelScript,
    ModelUse,
    open_model_server,
)
from sessionmgr.testing.model_server.isolated_env import IsolatedEnvironment
from tests.real.cancel_cases import (
    Case,
    a_text_streams,
    a_tool_ignores_signals,
    a_tool_runs,
    cancel_all,
    compactions_hang,
    in_a_question,
    in_a_tool,
    it_waits_to_try_again,
    nobody_reads,
    the_server_hangs,
)
from tests.real.codex.harness import open_house
from tests.real.harness import RealAgentHarness, until_event


async def a_process_of_its_own_runs(
    house: RealAgentHarness, word: str
) -> tuple[SessionHandle, RunHandle]:
    return await in_a_tool(house, word, f"tail -f /dev/null; : {word}", exec=True)


async def a_question_is_open(house: RealAgentHarness, word: str) -> tuple[SessionHandle, RunHandle]:
    wish: dict[str, Json] = {"cmd": f": {word}", "sandbox_permissions": "require_escalated"}
    wish["justification"] = "May I?"
    return await in_a_question(house, ModelCall(tool="exec_command", input=wish))


async def the_context_is_shortened(
    house: RealAgentHarness, word: str
) -> tuple[SessionHandle, RunHandle]:
    session = await house.session("full_auto")
    options = house.options(config={"model_auto_compact_token_limit": 20_000})
    call = ModelCall(tool="shell", input={"command": "true"})
    script: ModelScript = [[call, ModelUse(input=90_000)], [ModelSay(text=word)]]
    run = await house.submit(session, script, options=options)
    await until_event(run, "compaction_started")
    return session, run


ALL: Final[tuple[Case, ...]] = (
    a_text_streams,
    a_tool_runs,
    a_tool_ignores_signals,
    it_waits_to_try_again,
    a_question_is_open,
    the_context_is_shortened,
    the_server_hangs,
    nobody_reads,
    a_process_of_its_own_runs,
)
ESSENTIAL: Final[tuple[Case, ...]] = (a_text_streams, a_tool_ignores_signals, a_question_is_open)


async def test_a_run_is_cancelled_whatever_it_does(newest: Path, tmp_path: Path) -> None:
    async with open_model_server(compactions_hang) as server:
        hermitage = IsolatedEnvironment(tmp_path, server.url)
        env = hermitage.codex(retries=10)
        async with open_house(server, newest, hermitage.work, env) as house:
            await cancel_all(house, ALL)
    assert server.log.strangers == []


async def test_an_older_one_is_cancelled_as_well(old_house: RealAgentHarness) -> None:
    await cancel_all(old_house, ESSENTIAL)
