"""Runs of Gemini CLI over ACP, which is what the provider `gemini` uses by default."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from sessionmgr.model import RunStatus, ToolCallCompleted
from sessionmgr.testing.model_server import (
    ModelCall,
    ModelHang,
    ModelSay,
    ModelScript,
    ModelServer,
    ModelThink,
)
from sessionmgr.testing.model_server.isolated_env import IsolatedEnvironment
from sessionmgr_adapters.gemini import GeminiAdapter
from tests.real.gemini.harness import open_house
from tests.real.gemini.test_runs import chats
from tests.real.harness import RealAgentHarness, allow, see, until_event


@pytest.fixture
async def house(
    server: ModelServer, hermitage: IsolatedEnvironment, gemini_program: Path
) -> AsyncGenerator[RealAgentHarness, None]:
    env = hermitage.gemini()
    async with open_house(server, gemini_program, hermitage.work, env, GeminiAdapter) as house:
        yield house


def writes(place: Path, name: str) -> ModelScript:
    """Return a script that writes by a tool and by a command."""
    return [
        [ModelCall(tool="write", input={"path": f"{place}/{name}-tool", "content": "y"})],
        [ModelCall(tool="shell", input={"command": f"touch {place}/{name}-command"})],
        [ModelSay(text="It is done.")],
    ]


async def test_a_run_is_told_whole_and_either_way_goes_on(house: RealAgentHarness) -> None:
    session = await house.session("full_auto")
    write, *rest = writes(house.work, "x")
    script = [[ModelThink(text="I look."), ModelSay(text="I look."), *write], *rest]
    played = await house.play(script, session, model="fast")
    result = played.result
    assert (result.status, result.text) == ("completed", "It is done."), result.failure
    done = [each for each in played.events if isinstance(each, ToolCallCompleted)]
    assert len(done) == 2
    assert {each.name for each in house.work.iterdir()} == {"x-tool", "x-command"}
    assert "flash" in house.server.log.asked[-1].model
    again = await house.goes_on(session, model="fast")
    assert again.result.provider_session_id == result.provider_session_id
    headless = await house.goes_on(session, options=house.options(headless=True))
    assert headless.result.provider_session_id == result.provider_session_id
    assert "It is done." in str(house.server.log.asked[-1].items)
    own = str(result.provider_session_id)[:8]  # each process begins a session without prompts, too
    assert [each.stem[-8:] for each in chats(house) if "It is done." in each.read_text()] == [own]


async def test_what_a_mode_asks_about_is_done_if_it_is_allowed(house: RealAgentHarness) -> None:
    for mode, approve, made in (
        ("default", None, set[str]()),
        ("default", allow, {"-tool", "-command"}),
        ("accept_edits", None, {"-tool"}),
        ("plan", allow, set[str]()),
    ):
        cwd = house.place(f"{mode}-{approve is None}")
        session = await house.session(mode, cwd=cwd, approve=approve)
        for turn in ("fresh", "again"):
            played = await house.play(writes(cwd, turn), session)
            assert played.result.status is RunStatus.COMPLETED, played.result.failure
            found = {each.name for each in cwd.glob(f"{turn}*")}
            assert found == {f"{turn}{each}" for each in made}, mode


async def test_a_run_that_is_cancelled_leaves_the_session_usable(house: RealAgentHarness) -> None:
    session = await house.session()
    run = await house.submit(session, [[ModelSay(text="half", deltas=2), ModelHang()]])
    await until_event(run, "message_streamed")
    run.cancel()
    played = await see(run)
    assert played.result.status is RunStatus.CANCELLED
    await house.goes_on(session)
