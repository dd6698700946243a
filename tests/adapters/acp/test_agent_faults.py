"""What some agents do amiss: hidden errors, late replays, lost processes and left tools."""

from __future__ import annotations

import pytest

from sessionmgr.model import FailureKind, RunResult
from sessionmgr.testing.mock_sdk import INTERRUPTED
from sessionmgr_adapters.acp.failures import UNANSWERED
from sessionmgr_adapters.acp.frames import (
    Acknowledged,
    AcpRefusal,
    PromptEnded,
    SessionMode,
    SessionModes,
    SessionOpened,
    SessionUpdate,
)
from sessionmgr_adapters.acp.updates import ToolCallNews, ToolCallReport
from tests.adapters.acp.mock_agent import (
    HELLO,
    MODES,
    Talk,
    call_of,
    chunk,
    ended,
    opening,
    session_of,
    update,
)
from tests.adapters.acp.mocked_manager import Script, manager_of, play

COMMAND = {"command": ["x"]}
BUILD = SessionModes(
    current="build", available=(SessionMode(id="build"), SessionMode(id="approve"))
)


async def results_of(script: Script, provider: str) -> list[RunResult]:
    """Run two prompts of one session."""
    async with manager_of(script) as (manager, _):
        session = await manager.open_session(provider)
        runs = [await session.submit(each, options=COMMAND) for each in ("first", "second")]
        return [await each.result() for each in runs]


def report(session: str, status: str | None = None) -> SessionUpdate:
    news = ToolCallReport(tool_call_id="c", title="x", kind="execute", raw_input={"command": "x"})
    return update(
        session, news if status is None else ToolCallNews(tool_call_id="c", status=status)
    )


@pytest.mark.parametrize("is_answered", [True, False], ids=["answered", "unanswered"])
@pytest.mark.parametrize("provider", ["acp:kimi-cli", "acp:kimi-code"])
async def test_a_turn_that_ends_after_a_tool_without_a_text_has_failed(
    provider: str, *, is_answered: bool
) -> None:
    async def script(it: Talk) -> None:
        session = session_of(await opening(it))
        it.says(chunk(session, "I look."), report(session), report(session, "completed"))
        if is_answered:
            it.says(chunk(session, "Done."))
        it.says(PromptEnded(stop_reason="end_turn"))

    played = await play(script, provider=provider)
    failure = None if is_answered else (FailureKind.PROVIDER_ERROR, UNANSWERED)
    assert (played.result.failure and played.failure) == failure


async def test_a_session_whose_prompt_was_refused_stays_open() -> None:
    async def script(it: Talk) -> None:
        if "first" in str((call := await opening(it)).params):
            it.says(AcpRefusal(method="session/prompt", code=500, message="terminated"))
            return
        it.says(chunk(session_of(call), "well"), ended())

    first, second = await results_of(script, "acp:gemini")
    assert first.failure is not None
    assert (second.failure, second.text) == (None, "well")
    assert second.provider_session_id == first.provider_session_id


async def test_what_gemini_replays_after_the_answer_is_not_reported_again() -> None:
    async def script(it: Talk) -> None:
        it.says(HELLO)
        while (call := await call_of(it)).method != "session/prompt":
            match call.method:
                case "session/new":
                    it.says(SessionOpened(method=call.method, session_id="s", modes=MODES))
                case "session/load" | "session/resume":
                    it.says(SessionOpened(method=call.method, modes=MODES), chunk("s", "old "))
                case _:
                    it.says(Acknowledged(method=call.method))
        if "first" in str(call.params):
            it.ends()
        else:
            it.says(chunk("s", "new"), ended())

    first, second = await results_of(script, "acp:gemini")
    assert first.failure is not None
    assert (second.failure, second.text) == (None, "new")


@pytest.mark.parametrize("provider", ["acp:opencode", "acp:goose"])
async def test_a_process_whose_tool_may_have_left_others_serves_no_other_run(provider: str) -> None:
    async def script(it: Talk) -> None:
        session = session_of(call := await opening(it, modes=BUILD))
        if "first" in str(call.params):
            it.says(report(session))
            await it.gate("running")
            assert await it.heard() == INTERRUPTED
            it.says(ended("cancelled"))
            return
        it.says(chunk(session, "well"), ended())

    async with manager_of(script) as (manager, sdk):
        session = await manager.open_session(provider)
        run = await session.submit("first", options=COMMAND)
        await sdk.reached("running")
        sdk.open_gate("running")
        run.cancel()
        assert (await run.result()).status == "cancelled"
        again = await (await session.submit("second", options=COMMAND)).result()
        assert again.text == "well", again.failure
        assert len(sdk.connections) == (2 if provider == "acp:opencode" else 1)


async def test_a_process_that_cancels_its_turn_by_itself_serves_no_other_run() -> None:
    """It was asked to exit."""

    async def script(it: Talk) -> None:
        session = session_of(call := await opening(it))
        if "first" in str(call.params):
            it.says(report(session), ended("cancelled"))
            return
        it.says(chunk(session, "well"), ended())

    async with manager_of(script) as (manager, sdk):
        session = await manager.open_session("acp")
        first = await (await session.submit("first", options=COMMAND)).result()
        assert first.failure is not None
        again = await (await session.submit("second", options=COMMAND)).result()
        assert again.text == "well", again.failure
        assert len(sdk.connections) == 2


async def test_a_run_that_loses_its_process_can_be_resumed() -> None:
    async def script(it: Talk) -> None:
        call = await opening(it)
        it.says(chunk(session_of(call), "half"))
        it.ends()

    played = await play(script)
    failure = played.result.failure
    assert failure is not None
    assert (failure.retryable, failure.resumable) == (True, True)


async def test_a_run_whose_shared_process_was_about_to_end_gets_another_one() -> None:
    async def script(it: Talk) -> None:
        if len(sdk.conversations) == 2:
            it.ends()
            return
        it.says(chunk(session_of(await opening(it)), "well"), ended())

    async with manager_of(script) as (manager, sdk):
        for _ in range(2):
            session = await manager.open_session("acp")
            run = await session.submit("hi", options=COMMAND)
            result = await run.result()
            assert (result.failure, result.text) == (None, "well")
        assert len(sdk.connections) == 2


async def test_a_run_whose_own_process_ends_at_once_fails() -> None:
    async def script(it: Talk) -> None:
        it.ends()

    async with manager_of(script) as (manager, sdk):
        session = await manager.open_session("acp")
        result = await (await session.submit("hi", options=COMMAND)).result()
        assert result.failure is not None
        assert result.failure.kind != FailureKind.STALLED
        assert len(sdk.connections) == 1
