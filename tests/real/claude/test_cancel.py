"""A run is cancelled at difficult moments: it and all its processes end at once."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import trio

from sessionmgr.manager import RunHandle, SessionHandle
from sessionmgr.model import Json
from sessionmgr.testing.model_server import (
    ModelCall,
    ModelSay,
    ModelScript,
    open_model_server,
)
from sessionmgr.testing.model_server.isolated_env import IsolatedEnvironment
from tests.real.cancel_cases import (
    LIMIT,
    Case,
    a_stream_hangs,
    a_text_streams,
    a_tool_ignores_signals,
    a_tool_runs,
    cancel_all,
    compactions_hang,
    in_a_question,
    it_waits_to_try_again,
    nobody_reads,
    the_server_hangs,
)
from tests.real.claude.harness import RealAgentHarness, open_house, until, until_event, with_word


async def something_runs_in_the_background(
    house: RealAgentHarness, word: str
) -> tuple[SessionHandle, RunHandle]:
    session = await house.session("full_auto")
    command = f"tail -f /dev/null; : {word}"
    call: dict[str, Json] = {"command": command, "run_in_background": True, "description": "d"}
    run = await house.submit(
        session, [[ModelCall(tool="Bash", input=call)], [ModelSay(text="soon")]]
    )
    await until_event(run, "turn_completed")
    await until(lambda: bool(with_word(word)))
    return session, run


async def a_question_is_open(house: RealAgentHarness, word: str) -> tuple[SessionHandle, RunHandle]:
    return await in_a_question(house, ModelCall(tool="shell", input={"command": f"touch {word}"}))


async def the_context_is_shortened(
    house: RealAgentHarness, word: str
) -> tuple[SessionHandle, RunHandle]:
    session = await house.session()
    options = house.options(slash_commands=True)
    await house.play([[ModelSay(text=word)]], session, options=options)
    run = await house.submit(session, "/compact", options=options)
    await until_event(run, "compaction_started")
    return session, run


ALL: Final[tuple[Case, ...]] = (
    a_text_streams,
    a_stream_hangs,
    a_tool_runs,
    a_tool_ignores_signals,
    something_runs_in_the_background,
    it_waits_to_try_again,
    a_question_is_open,
    the_context_is_shortened,
    the_server_hangs,
    nobody_reads,
)
ESSENTIAL: Final[tuple[Case, ...]] = (
    a_text_streams,
    a_tool_ignores_signals,
    something_runs_in_the_background,
)


async def test_a_run_is_cancelled_whatever_it_does(newest: Path, tmp_path: Path) -> None:
    async with open_model_server(compactions_hang) as server:
        hermitage = IsolatedEnvironment(tmp_path, server.url)
        env = {**hermitage.claude(retries=10), "IS_SANDBOX": "1"}
        async with open_house(server, newest, hermitage.work, env) as house:
            for some in (ALL[::2], ALL[1::2]):  # all at once would be slow for lack of cores
                await cancel_all(house, some)
    assert server.log.strangers == []


async def test_an_older_one_is_cancelled_as_well(old_house: RealAgentHarness) -> None:
    await cancel_all(old_house, ESSENTIAL)


async def test_a_run_is_over_when_its_block_is_left(house: RealAgentHarness) -> None:
    session, word = await house.session("full_auto"), house.word()
    script: ModelScript = [
        [ModelCall(tool="shell", input={"command": f"tail -f /dev/null; : {word}"})]
    ]
    options = house.options(keep=False)
    run = await house.submit(session, script, options=options)
    await until(lambda: bool(with_word(word)))
    with trio.fail_after(LIMIT):
        await run.leave(early=False)
    assert run.status == "cancelled"
    await until(lambda: not with_word(word), LIMIT)


async def test_work_in_the_background_keeps_a_run_open(any_house: RealAgentHarness) -> None:
    waits = "until [ -e go ]; do sleep 0.05; done; touch late"
    command: dict[str, Json] = {"command": waits, "run_in_background": True}
    script: ModelScript = [
        [ModelCall(tool="Bash", input=command)],
        [ModelSay(text="soon")],
        [ModelSay(text="seen")],
    ]
    run = await any_house.submit(await any_house.session("full_auto"), script)
    await until_event(run, "turn_completed")
    Path(any_house.work, "go").touch()
    result = await run.result()
    assert result.status == "completed", result.failure
    assert Path(any_house.work, "late").exists()
    assert result.turns == 2
