"""Runs of kimi-code over ACP, under the provider `kimi`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import trio

from sessionmgr.manager import Clocks, open_manager
from sessionmgr.model import Json, RunStatus, ToolCallCompleted
from sessionmgr.store import MemoryStore
from sessionmgr.testing.model_server import (
    ModelCall,
    ModelHang,
    ModelSay,
    ModelScript,
    ModelServer,
)
from sessionmgr.testing.model_server.isolated_env import IsolatedEnvironment
from sessionmgr_adapters.kimi import KimiAdapter
from tests.real.agent_programs import ACP, program_of
from tests.real.harness import (
    CLOSE,
    PATIENCE,
    RealAgentHarness,
    allow,
    nothing_is_left,
    see,
    until_event,
)


class KimiCodeHarness(RealAgentHarness):
    def options(self, **more: Json) -> dict[str, Json]:
        return super().options(code=True, **more)


@pytest.fixture
async def house(
    server: ModelServer, hermitage: IsolatedEnvironment
) -> AsyncGenerator[KimiCodeHarness, None]:
    store, env = MemoryStore(), hermitage.kimi_code()
    program = program_of("kimi-code", ACP["kimi-code"])
    with trio.fail_after(PATIENCE):
        async with open_manager(
            store=store,
            adapters={"kimi": KimiAdapter},
            environ=env,
            clocks=Clocks(close=CLOSE),
        ) as manager:
            house = KimiCodeHarness("kimi", manager, server, program, hermitage.work, env)
            yield house
    await nothing_is_left(house, store)


def writes(place: Path, name: str) -> ModelScript:
    """Return a script that writes by a tool and by a command."""
    return [
        [ModelCall(tool="write", input={"path": f"{place}/{name}-tool", "content": "y"})],
        [ModelCall(tool="shell", input={"command": f"touch {place}/{name}-command"})],
        [ModelSay(text="It is done.")],
    ]


async def test_a_run_is_told_whole_and_the_next_goes_on(house: KimiCodeHarness) -> None:
    session = await house.session("full_auto")
    played = await house.play(writes(house.work, "x"), session)
    result = played.result
    assert (result.status, result.text) == ("completed", "It is done."), result.failure
    done = [each for each in played.events if isinstance(each, ToolCallCompleted)]
    assert len(done) == 2
    assert {each.name for each in house.work.iterdir()} == {"x-tool", "x-command"}
    again = await house.goes_on(session)
    assert again.result.provider_session_id == result.provider_session_id
    assert "It is done." in str(house.server.log.asked[-1].items)


async def test_what_a_mode_asks_about_is_done_if_it_is_allowed(house: KimiCodeHarness) -> None:
    for mode, approve, made in (
        ("default", None, set[str]()),
        ("default", allow, {"-tool", "-command"}),
        ("accept_edits", None, {"-tool"}),
    ):
        cwd = house.place(f"{mode}-{approve is None}")
        session = await house.session(mode, cwd=cwd, approve=approve)
        for turn in ("fresh", "again"):
            played = await house.play(writes(cwd, turn), session)
            assert played.result.status is RunStatus.COMPLETED, played.result.failure
            found = {each.name for each in cwd.glob(f"{turn}*")}
            assert found == {f"{turn}{each}" for each in made}, mode


async def test_a_run_that_is_cancelled_leaves_the_session_usable(house: KimiCodeHarness) -> None:
    session = await house.session("full_auto")
    run = await house.submit(
        session, [[ModelSay(text="half", deltas=2), ModelHang()]], options=house.options()
    )
    await until_event(run, "message_streamed")
    run.cancel()
    assert (await see(run)).result.status is RunStatus.CANCELLED
    await house.goes_on(session)
