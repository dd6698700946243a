"""A turn: messages into it, cancelling it, and its end."""

from __future__ import annotations

import trio
import trio.testing
from msgspec.structs import replace

from sessionmgr.adapter import ApprovalRequest, Decision
from sessionmgr.model import FailureKind
from sessionmgr.testing.mock_sdk import INTERRUPTED
from sessionmgr_adapters.acp.frames import (
    AcpRefusal,
    PromptEnded,
    RequestCancelled,
    SessionMode,
    SessionModes,
    SessionOpened,
    SteeringAnswered,
)
from sessionmgr_adapters.acp.phase import TRANSITIONS, AcpPhase
from sessionmgr_adapters.acp.sdk import AcpReply
from sessionmgr_adapters.acp.updates import (
    CommandsUpdate,
    ModeUpdate,
    NoticeUpdate,
    ToolCallNews,
)
from sessionmgr_adapters.acp.v1 import AcpCall
from tests.adapters.acp.mock_agent import (
    HELLO,
    Talk,
    call_of,
    chosen,
    chunk,
    ended,
    opening,
    permission,
    session_of,
    update,
)
from tests.adapters.acp.mocked_manager import Played, Script, manager_of, play

COMMAND = {"command": ["x"]}


def test_each_phase_is_reachable_and_ends() -> None:
    reached = {AcpPhase.OPENING, *(to for steps in TRANSITIONS.values() for to in steps.values())}
    assert reached == set(AcpPhase)
    assert [each for each, steps in TRANSITIONS.items() if not steps] == ["over", "lost"]


# --- messages into a turn -------------------------------------------------------------------------


def steered(outcome: str) -> Script:
    async def script(it: Talk) -> None:
        call = await opening(it)
        it.says(chunk(session_of(call), "one"))
        await it.gate("running")
        steering = await call_of(it)
        assert steering.method == "_session/steering"
        it.says(SteeringAnswered(outcome=outcome), ended())

    return script


async def appended(script: Script, provider: str = "acp") -> list[str]:
    """Add a message to a run, and return what became of it."""
    async with manager_of(script) as (manager, sdk):
        session = await manager.open_session(provider, permission_mode="full_auto")
        run = await session.submit("hi", options=COMMAND)
        await sdk.reached("running")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run.append, "more")
            await trio.testing.wait_all_tasks_blocked()
            sdk.open_gate("running")
        await run.result()
        return [e.state async for e in run if e.type == "message_sent" and e.content == "more"]


async def test_a_message_is_added_to_the_turn_of_an_agent_that_takes_it() -> None:
    assert await appended(steered("injected")) == ["queued", "sent"]


async def test_a_message_that_came_too_late_for_the_turn_is_refused() -> None:
    assert await appended(steered("promptRequired")) == ["queued", "dropped"]


async def test_an_agent_that_takes_no_messages_gets_the_message_as_its_next_prompt() -> None:
    async def script(it: Talk) -> None:
        call = await opening(it, replace(HELLO, steers=False))
        it.says(chunk(session_of(call), "one"))
        await it.gate("running")
        it.says(ended())

    assert await appended(script) == ["queued", "dropped"]


# --- cancelling -----------------------------------------------------------------------------------


async def undecided(_: ApprovalRequest) -> Decision:
    await trio.sleep_forever()


async def cancelled(script: Script) -> Played:
    """Cancel a run at the gate."""
    async with manager_of(script) as (manager, sdk):
        session = await manager.open_session("acp", approve=undecided)
        run = await session.submit("hi", options=COMMAND)
        await sdk.reached("here")
        run.cancel()
        sdk.open_gate("here")
        events = [event async for event in run]
        return Played(await run.result(), events)


async def test_open_requests_are_answered_as_cancelled() -> None:
    answers: list[object] = []

    async def script(it: Talk) -> None:
        call = await opening(it)
        session = session_of(call)
        it.says(permission(session, call=ToolCallNews(tool_call_id="c1", title="saw")))
        await it.gate("here")
        assert await it.heard() == INTERRUPTED
        answers.append(await it.heard())
        it.says(permission(session, name="late"))
        answers.append(await it.heard())
        it.says(ended("cancelled"))

    played = await cancelled(script)
    assert played.result.status == "cancelled"
    assert [chosen(each) for each in answers] == [None, None]


async def test_a_cancelled_run_is_cancelled_whatever_the_agent_reports() -> None:
    async def script(it: Talk) -> None:
        await opening(it)
        await it.gate("here")
        assert await it.heard() == INTERRUPTED
        it.says(AcpRefusal(method="session/prompt", code=-32603, message="Request was aborted."))

    assert (await cancelled(script)).result.status == "cancelled"


async def test_a_run_that_is_cancelled_before_its_prompt_sends_none() -> None:
    heard: list[str] = []

    async def script(it: Talk) -> None:
        it.says(HELLO)
        heard.append((await call_of(it)).method)
        await it.gate("here")
        heard.append((await call_of(it)).method)

    assert (await cancelled(script)).result.status == "cancelled"
    assert heard == ["session/new"]


async def test_a_request_that_the_agent_withdraws_is_answered_with_an_error() -> None:
    answers: list[object] = []

    async def script(it: Talk) -> None:
        call = await opening(it)
        session = session_of(call)
        it.says(chunk(session, "x"), permission(session), RequestCancelled(name="ask-1"))
        answers.append(await it.heard())
        it.says(ended())

    played = await play(script, approve=undecided)
    assert played.result.status == "completed"
    assert answers == [AcpReply("ask-1", None, -32800, "the request was cancelled")]


async def test_a_login_that_is_missing_in_the_turn_names_the_remedy() -> None:
    async def script(it: Talk) -> None:
        await opening(it, modes=OF_GOOSE)
        it.says(AcpRefusal(method="session/prompt", code=-32000, message="Log in first"))

    kind, message = (await play(script, provider="acp:goose")).failure
    assert kind == FailureKind.AUTH_FAILED
    assert message.startswith("the turn failed: Log in first; run `goose configure`, or set ")


# --- the mode in a turn ---------------------------------------------------------------------------

OF_GOOSE = SessionModes(
    current="approve", available=(SessionMode(id="auto"), SessionMode(id="approve"))
)


async def test_an_agent_that_leaves_its_mode_fails_the_run() -> None:
    async def script(it: Talk) -> None:
        call = await opening(it, modes=OF_GOOSE)
        session = session_of(call)
        it.says(chunk(session, "x"), update(session, ModeUpdate(current_mode_id="auto")))
        assert await it.heard() == INTERRUPTED
        it.says(ended("cancelled"))

    played = await play(script, provider="acp:goose")
    assert played.failure == (
        FailureKind.PERMISSION_REFUSED,
        "the agent has changed its mode from 'approve' to 'auto'",
    )
    assert played.of_type("policy_violation")


async def test_another_mode_of_an_unknown_agent_is_reported() -> None:
    async def script(it: Talk) -> None:
        call = await opening(it, modes=OF_GOOSE)
        session = session_of(call)
        for each in ("approve", "auto", "auto"):
            it.says(update(session, ModeUpdate(current_mode_id=each)))
        it.says(chunk(session, "x"), ended())

    played = await play(script)
    assert played.result.status == "completed"
    [warning] = played.of_type("error_occurred")
    assert warning.severity == "warning"
    assert warning.failure.kind == FailureKind.PERMISSION_REFUSED
    assert "from 'approve' to 'auto'" in warning.failure.message


async def test_in_a_mode_without_questions_the_agents_mode_may_change() -> None:
    async def script(it: Talk) -> None:
        call = await opening(it, modes=replace(OF_GOOSE, current="auto"))
        session = session_of(call)
        it.says(
            chunk(session, "x"), update(session, ModeUpdate(current_mode_id="approve")), ended()
        )

    played = await play(script, provider="acp:goose", mode="full_auto")
    assert played.result.status == "completed"


GEMINI = SessionModes(
    current="default",
    available=tuple(SessionMode(id=each) for each in ("default", "autoEdit", "yolo", "plan")),
)


async def test_a_text_that_reports_the_mode_is_no_message() -> None:
    async def script(it: Talk) -> None:
        call = await opening(it, modes=GEMINI)
        session = session_of(call)
        it.says(chunk(session, "[MODE_UPDATE] plan"), chunk(session, "Planned."), ended())

    played = await play(script, provider="acp:gemini", mode="plan")
    assert played.result.text == "Planned."


async def test_a_narrower_mode_is_accepted() -> None:
    async def script(it: Talk) -> None:
        call = await opening(it, modes=GEMINI)
        session = session_of(call)
        it.says(chunk(session, "[MODE_UPDATE] plan"), chunk(session, "x"), ended())

    assert (await play(script, provider="acp:gemini")).result.status == "completed"


# --- events and ends ------------------------------------------------------------------------------


async def test_what_the_agent_reports_before_the_prompt_follows_the_start_of_the_run() -> None:
    async def script(it: Talk) -> None:
        it.says(HELLO)
        call = await call_of(it)
        notice = NoticeUpdate(severity="warning", title="old version")
        it.says(update("s1", notice), update("s1", CommandsUpdate()))
        it.says(SessionOpened(method=call.method, session_id="s1"))
        await it.heard()
        it.says(chunk("s1", "ok"), ended())

    played = await play(script)
    types = [each.type for each in played.events]
    assert types.index("run_started") < types.index("error_occurred")


async def test_the_usage_of_an_agent_that_reports_sums_is_counted_once() -> None:
    async def script(it: Talk) -> None:
        called.append(call := await opening(it, modes=COPILOT))
        it.says(chunk(session_of(call), "x"), ended(), ended())

    called: list[AcpCall] = []
    async with manager_of(script) as (manager, _):
        session = await manager.open_session("acp:copilot")
        usages: list[int] = []
        for _ in range(2):
            async with session.start("hi", options=COMMAND) as run:
                usages.append((await run.result()).usage.input)
    assert usages == [3, 0]


COPILOT = SessionModes(
    current="https://agentclientprotocol.com/protocol/session-modes#agent",
    available=(SessionMode(id="https://agentclientprotocol.com/protocol/session-modes#agent"),),
)


async def test_a_turn_without_any_sign_of_work_is_a_failure() -> None:
    async def script(it: Talk) -> None:
        await opening(it)
        it.says(PromptEnded(stop_reason="end_turn"))

    assert (await play(script)).failure[0] == FailureKind.PROVIDER_ERROR


async def test_an_agent_that_exits_in_its_turn_fails_the_run() -> None:
    async def script(it: Talk) -> None:
        call = await opening(it)
        it.says(update(session_of(call), ToolCallNews(tool_call_id="c", status="in_progress")))
        it.ends()

    played = await play(script)
    assert played.result.status == "failed"
    assert played.of_type("tool_call_failed")
