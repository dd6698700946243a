"""The whole adapter on a real child."""

import os
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import trio

from sessionmgr.adapter import Allow, ApprovalRequest, Decision
from sessionmgr.manager import Clocks, Manager, open_manager
from sessionmgr.manager.handles import SessionHandle
from sessionmgr.model import (
    AnyEvent,
    FailureKind,
    MessageStreamed,
    ProcessExited,
    RunResult,
    RunStatus,
)
from sessionmgr.testing.toy import ToyAdapter


@pytest.fixture
async def manager() -> AsyncGenerator[Manager, None]:
    with trio.fail_after(60):
        async with open_manager(adapters={"toy": ToyAdapter}, clocks=Clocks(close=10)) as opened:
            yield opened


@pytest.fixture
async def session(manager: Manager, tmp_path: Path) -> SessionHandle:
    return await manager.open_session("toy", cwd=tmp_path)


async def play(session: SessionHandle, prompt: str) -> tuple[RunResult, list[AnyEvent]]:
    async with session.start(prompt) as run:
        events = [event async for event in run]
        return await run.result(), events


async def test_it_says_and_does_what_its_prompt_says(session: SessionHandle) -> None:
    result, events = await play(session, "say one two; use hammer; three")
    assert (result.status, result.text) == (RunStatus.COMPLETED, "three")
    assert result.tool_calls.count == {"hammer": 1}
    deltas = [each.delta for each in events if isinstance(each, MessageStreamed)]
    assert deltas == ["one", " two", "three"]


async def test_one_agent_serves_one_run_after_the_other(session: SessionHandle) -> None:
    first, _ = await play(session, "one")
    second, _ = await play(session, "two")
    assert first.provider_session_id == second.provider_session_id
    assert first.provider_session_id is not None
    os.kill(int(first.provider_session_id.split("-")[1]), 0)  # it lives


async def test_it_asks_and_does_what_it_may(session: SessionHandle) -> None:
    async def approve(request: ApprovalRequest) -> Decision:
        return Allow(tool_input={"n": 7}) if request.tool_name == "saw" else Allow()

    async with session.start("ask saw", approve=approve) as run:
        result = await run.result()
    assert result.tool_calls.count == {"saw": 1}
    result, _ = await play(session, "ask saw")
    assert result.text.startswith("not allowed")


async def test_a_cancel_ends_the_turn_and_not_the_agent(session: SessionHandle) -> None:
    async with session.start("half; wait 1000; rest") as run:
        async for event in run:
            if isinstance(event, MessageStreamed):
                run.cancel()
        result = await run.result()
    assert (result.status, result.text) == (RunStatus.CANCELLED, "half")
    again, _ = await play(session, "again")
    assert (again.status, again.provider_session_id) == (
        RunStatus.COMPLETED,
        result.provider_session_id,
    )


async def test_another_message_goes_into_the_turn(session: SessionHandle) -> None:
    asked, told = trio.Event(), trio.Event()

    async def approve(request: ApprovalRequest) -> Decision:
        asked.set()
        await told.wait()
        return Allow()

    async with session.start("one; ask saw", approve=approve) as run:
        await asked.wait()
        follow_up = await run.append("three")
        told.set()
        result = await run.result()
    assert follow_up.accepted
    assert (result.status, result.text) == (RunStatus.COMPLETED, "three")


@pytest.mark.parametrize("code", [0, 3])
async def test_an_agent_that_goes_in_mid_turn_has_failed_whatever_its_exit_code(
    session: SessionHandle, code: int
) -> None:
    result, events = await play(session, f"half; complain ouch; exit {code}")
    assert (result.status, result.text, result.exit_code) == (RunStatus.FAILED, "half", code)
    assert result.failure is not None
    assert (result.failure.kind, result.failure.stderr_tail) == (
        FailureKind.PROCESS_EXITED,
        "ouch",
    )
    assert any(isinstance(each, ProcessExited) for each in events)
    again, _ = await play(session, "again")
    assert again.status is RunStatus.COMPLETED


async def test_noise_and_unknown_frames_do_no_harm(session: SessionHandle) -> None:
    orders = 'print hello there; print {"type":"news"}; print {"type":; on'
    result, events = await play(session, orders)
    assert (result.status, result.text) == (RunStatus.COMPLETED, "on")
    kinds = [each.type for each in events]
    assert {"output_received", "raw_received", "error_occurred"} <= set(kinds)


async def test_an_agent_that_is_not_kept_is_gone_after_its_run(session: SessionHandle) -> None:
    async with session.start("one", options={"keep": False}) as run:
        result = await run.result()
    assert result.provider_session_id is not None
    pid = int(result.provider_session_id.split("-")[1])
    while is_alive(pid):  # noqa: ASYNC110  # another process
        await trio.sleep(0.01)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_program_that_is_not_there_is_a_failed_run(session: SessionHandle) -> None:
    async with session.start("one", options={"command": ["no-such-agent"]}) as run:
        result = await run.result()
    assert result.failure is not None
    assert result.failure.kind is FailureKind.CLI_NOT_FOUND
