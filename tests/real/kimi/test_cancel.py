"""A run is cancelled at difficult moments: it and all its processes end at once."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Final

import pytest

from sessionmgr.manager import RunHandle, SessionHandle
from sessionmgr.model import FailureKind, Json, RunStatus
from sessionmgr.testing.model_server import ModelCall, ModelHang, ModelRefuse, ModelSay, ModelServer
from sessionmgr.testing.model_server.isolated_env import IsolatedEnvironment
from tests.real.cancel_cases import (
    Case,
    a_stream_hangs,
    a_text_streams,
    a_tool_ignores_signals,
    a_tool_runs,
    cancel_all,
    in_a_question,
    nobody_reads,
    the_server_hangs,
)
from tests.real.harness import RealAgentHarness, is_kept, living, until, until_event, with_word
from tests.real.killed_owner import goes_on_after_that, kill_owner
from tests.real.kimi.harness import kimi_environment, kimi_pids, kimis_in, open_house


async def a_question_is_open(house: RealAgentHarness, word: str) -> tuple[SessionHandle, RunHandle]:
    return await in_a_question(house, ModelCall(tool="shell", input={"command": f"touch {word}"}))


async def a_message_is_queued(
    house: RealAgentHarness, word: str
) -> tuple[SessionHandle, RunHandle]:
    session, run = await a_stream_hangs(house, word)
    assert (await run.append("and this")).accepted
    return session, run


async def it_waits_to_try_again(
    house: RealAgentHarness, word: str
) -> tuple[SessionHandle, RunHandle]:
    session = await house.session()
    run = await house.submit(session, [[ModelRefuse(status=500, message=word)]])
    await until_event(run, "retry_scheduled")
    return session, run


ALL: Final[tuple[Case, ...]] = (
    a_text_streams,
    a_stream_hangs,
    a_tool_runs,
    a_tool_ignores_signals,
    a_question_is_open,
    the_server_hangs,
    a_message_is_queued,
    it_waits_to_try_again,
    nobody_reads,
)


async def test_a_run_is_cancelled_whatever_it_does(
    server: ModelServer, hermitage: IsolatedEnvironment, kimi_program: Path
) -> None:
    env = kimi_environment(hermitage, attempts=10)
    async with open_house(server, kimi_program, hermitage.work, env) as house:
        for some in (ALL[::2], ALL[1::2]):  # all at once would be slow for lack of cores
            await cancel_all(house, some)


async def test_what_runs_in_the_background_ends_with_its_run(house: RealAgentHarness) -> None:
    word = house.word()
    command: dict[str, Json] = {"command": f"tail -f /dev/null; : {word}", "description": "waits"}
    call = ModelCall(tool="Shell", input={**command, "run_in_background": True})
    session = await house.session("full_auto")
    played = await house.play([[call], [ModelSay(text="soon")]], session)
    assert played.result.text == "soon", played.result
    await until(lambda: not with_word(word))
    # Kimi puts its notice of the killed task behind the next prompt.
    again = await house.play([[ModelSay(text="All is well.")]], session)
    assert again.result.status is RunStatus.COMPLETED, again.result


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGTERM], ids=lambda each: each.name)
async def test_a_kimi_that_is_ended_fails_its_run_and_the_session_goes_on(
    house: RealAgentHarness, sign: signal.Signals
) -> None:
    for tool in (False, True):
        session = await house.session("full_auto")
        shell = ModelCall(tool="shell", input={"command": "sleep 1000"})
        run = await house.submit(
            session, [[shell]] if tool else [[ModelSay(text="So", deltas=2), ModelHang()]]
        )
        await until_event(run, "tool_call_started" if tool else "message_streamed")
        if tool:
            await until(lambda: any("sleep 1000" in each for each in living(house.work)))
        await until(lambda: is_kept(house.work.parent, "do"))
        [pid] = kimi_pids(house.work)
        os.kill(pid, sign)
        result = await run.result()
        assert result.status is RunStatus.FAILED
        assert result.failure is not None
        assert result.failure.kind in {FailureKind.KILLED_BY_OS, FailureKind.PROCESS_EXITED}
        assert (result.failure.retryable, result.failure.resumable) == (True, True)
        await until(lambda: not any("sleep 1000" in each for each in living(house.work)))
        again = await house.goes_on(session, options=house.options(keep=False))
        assert again.result.provider_session_id == result.provider_session_id
        await until(lambda: kimis_in(house.work) == 0)


async def test_nothing_outlives_the_program_that_owns_it(
    server: ModelServer, hermitage: IsolatedEnvironment, kimi_program: Path, tmp_path: Path
) -> None:
    env, work, store = kimi_environment(hermitage), hermitage.work, tmp_path / "runs.db"
    await kill_owner("kimi", kimi_program, store, work, env)
    async with open_house(server, kimi_program, work, env, store=store) as house:
        await goes_on_after_that(house)
