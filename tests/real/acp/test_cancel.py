"""Cancels of every agent at the worst moments: the run ends, and its session continues."""

from __future__ import annotations

from typing import Final

import trio

from sessionmgr.manager import RunHandle, SessionHandle
from sessionmgr.testing.model_server import ModelCall, ModelHang, ModelSay
from tests.real.acp.agents import InstalledAcpAgent
from tests.real.acp.harness import AcpHarness, processes_of
from tests.real.acp.limits import FORCED, LEFT, outcome_of
from tests.real.cancel_cases import (
    LIMIT,
    Case,
    a_text_streams,
    a_tool_ignores_signals,
    a_tool_runs,
    in_a_question,
    the_server_hangs,
)
from tests.real.harness import RealAgentHarness, until, until_event, with_word

CANCELLED: Final = "cancelled"


async def a_question_is_open(house: RealAgentHarness, word: str) -> tuple[SessionHandle, RunHandle]:
    command = f"echo {word} > {house.work.parent}/outside.txt"
    if house.provider == "acp:codex-acp":  # it asks only if its model wants to leave the sandbox
        wish = {"cmd": command, "sandbox_permissions": "require_escalated", "justification": "?"}
        return await in_a_question(house, ModelCall(tool="exec_command", input=wish))
    return await in_a_question(house, ModelCall(tool="shell", input={"command": command}))


async def a_prompt_is_queued(house: RealAgentHarness, word: str) -> tuple[SessionHandle, RunHandle]:
    """Cancel a prompt behind another one, which is not disturbed."""
    session = await house.session()
    first = await house.submit(session, [[ModelSay(text=word, deltas=2), ModelHang()]])
    await until_event(first, "message_streamed")
    queued = await house.submit(session, [[ModelSay(text="never said")]])
    assert queued.cancel("not wanted")
    assert (await queued.result()).status == "cancelled"
    assert first.status == "running"
    return session, first


CASES: Final[tuple[Case, ...]] = (
    a_text_streams,
    the_server_hangs,
    a_tool_runs,
    a_prompt_is_queued,
    a_question_is_open,
    a_tool_ignores_signals,
)


async def test_a_run_is_cancelled_whatever_it_does(
    house: AcpHarness, acp_agent: InstalledAcpAgent
) -> None:
    found: dict[str, str] = {}
    wanted: dict[str, str] = {}
    for case in CASES:
        name = case.__name__.replace("_", " ")
        wanted[name] = outcome_of(acp_agent.id, name, CANCELLED)
        found[name] = await cancelled(house, case, wanted[name])
    assert found == wanted


async def cancelled(house: AcpHarness, case: Case, wanted: str) -> str:
    """Cancel a run; check that it ends in time and can be resumed, and return how it ended."""
    word = house.word()
    session, run = await case(house, word)
    agents = processes_of(house)
    before = trio.current_time()
    assert run.cancel("enough")
    result = await run.result()
    took = trio.current_time() - before
    told = f"{case.__name__}: {result.status} after {took:.2f} s: {result.failure}"
    assert (result.status, result.reason, result.detail) == ("cancelled", "user", "enough"), told
    assert took < LIMIT, told
    if wanted != LEFT:
        await until(lambda: not with_word(word), LIMIT)
    again = await house.goes_on(session)
    assert again.result.provider_session_id == result.provider_session_id
    if with_word(word):
        return LEFT
    return CANCELLED if set(processes_of(house)) <= set(agents) else FORCED  # if it needed another
