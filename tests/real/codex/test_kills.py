"""Kills of a real Codex and of its owner: the consequences, and that no process survives."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
import trio

from sessionmgr.manager import RunHandle, SessionHandle
from sessionmgr.model import Event, FailureKind, RunEnded, RunStatus
from sessionmgr.testing.model_server import (
    ModelCall,
    ModelHang,
    ModelSay,
    ModelScript,
    ModelServer,
    prompt_with,
)
from sessionmgr.testing.model_server.isolated_env import IsolatedEnvironment
from sessionmgr_adapters.codex import driver
from sessionmgr_adapters.codex.frames import CodexFrame
from sessionmgr_adapters.codex.normalise import normalise
from sessionmgr_adapters.codex.state import CodexState
from tests.real.codex.harness import open_house
from tests.real.harness import (
    RealAgentHarness,
    is_kept,
    line_of,
    living,
    programs_of,
    until,
    until_event,
)
from tests.real.killed_owner import goes_on_after_that, kill_owner

AT_ONCE = 20
KILLED = {FailureKind.KILLED_BY_OS, FailureKind.PROCESS_EXITED}


def app_servers(house: RealAgentHarness) -> list[int]:
    """Return the app-servers of a harness."""
    return [pid for pid in programs_of(house) if b"\0app-server\0" in line_of(pid)]


async def at_work(house: RealAgentHarness, number: int) -> tuple[SessionHandle, RunHandle]:
    """Start a session that is in the middle of a turn."""
    session = await house.session("full_auto")
    word = f"{house.mark}-{number:02}"
    shell = ModelCall(tool="shell", input={"command": f"sleep 1000; : {word}"})
    # Codex waits at most ten seconds for a command, and then calls its model again.
    script: ModelScript = (
        [[shell], [ModelHang()]] if number % 2 else [[ModelSay(text="So", deltas=2), ModelHang()]]
    )
    run = await house.submit(session, prompt_with(script, word))
    await until_event(run, "tool_call_started" if number % 2 else "message_streamed")
    await until(lambda: is_kept(house.work.parent, word))  # otherwise there is nothing to resume
    return session, run


async def ends_once_and_goes_on(
    house: RealAgentHarness, session: SessionHandle, run: RunHandle
) -> None:
    result = await run.result()
    assert result.status is RunStatus.FAILED
    assert result.failure is not None
    assert result.failure.kind in KILLED, result.failure
    assert (result.failure.retryable, result.failure.resumable) == (True, True)
    assert len([each async for each in run if isinstance(each, RunEnded)]) == 1
    again = await house.goes_on(session)
    assert again.result.provider_session_id == result.provider_session_id


async def test_an_app_server_that_is_killed_costs_its_turns_and_no_more(
    house: RealAgentHarness,
) -> None:
    runs: list[tuple[SessionHandle, RunHandle]] = []

    async def begin(number: int) -> None:
        runs.append(await at_work(house, number))

    async with trio.open_nursery() as nursery:
        for number in range(AT_ONCE):
            nursery.start_soon(begin, number)
    [server] = app_servers(house)
    os.kill(server, signal.SIGKILL)
    async with trio.open_nursery() as nursery:
        for session, run in runs:
            nursery.start_soon(ends_once_and_goes_on, house, session, run)
    [another] = app_servers(house)
    assert another != server
    await until(lambda: not any("sleep 1000" in each for each in living(house.work)))
    os.kill(another, signal.SIGKILL)  # idle
    await house.goes_on(runs[0][0])


async def test_a_run_that_crashes_costs_its_neighbours_nothing(
    house: RealAgentHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    word = house.word()

    def crash(frame: CodexFrame, state: CodexState) -> list[Event]:
        if word in str(frame):
            raise RuntimeError("this frame is too much")
        return normalise(frame, state)

    monkeypatch.setattr(driver, "normalise", crash)
    gate = house.gate()
    long = ModelSay(text="So", deltas=2, until=str(gate))
    beside = await house.submit(await house.session(), [[long]])
    await until_event(beside, "message_streamed")
    session = await house.session()
    played = await house.play([[ModelSay(text=word)]], session)
    assert played.result.failure is not None
    assert played.result.failure.kind is FailureKind.ADAPTER_CRASHED
    gate.touch()
    assert (await beside.result()).text == "So"
    await house.goes_on(await house.session())
    assert len(app_servers(house)) == 1


async def test_nothing_outlives_the_program_that_owns_it(
    server: ModelServer, hermitage: IsolatedEnvironment, newest: Path, tmp_path: Path
) -> None:
    env, work, store = hermitage.codex(), hermitage.work, tmp_path / "runs.db"
    await kill_owner("codex", newest, store, work, env)
    async with open_house(server, newest, work, env, store=store) as house:
        await goes_on_after_that(house)
