"""Runs in version 2: queued prompts, turns that a state ends, and work in the background."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
import trio
import trio.testing
from msgspec.structs import replace
from trio.testing import MockClock

from sessionmgr.model import FailureKind, Json
from sessionmgr.testing.mock_sdk import INTERRUPTED
from sessionmgr_adapters.acp.frames import (
    Acknowledged,
    AcpFrame,
    AcpRefusal,
    PromptAccepted,
    SessionMode,
    SessionModes,
    SessionOpened,
    SteeringAnswered,
)
from sessionmgr_adapters.acp.run_messages import MAX_QUEUED
from sessionmgr_adapters.acp.updates import (
    AcpUsage,
    AgentChunk,
    ContentBlock,
    ModeUpdate,
    StateUpdate,
    SubagentUpdate,
    TerminalNews,
    ToolCallNews,
    UserContent,
)
from sessionmgr_adapters.acp.v1 import AcpCall
from tests.adapters.acp.mock_agent import (
    ALL,
    HELLO,
    MODES,
    Talk,
    call_of,
    chosen,
    ended,
    opening,
    permission,
    prompt_of,
    session_of,
    update,
)
from tests.adapters.acp.mocked_manager import Played, Script, manager_of, play

HELLO_2 = replace(HELLO, version=2, steers=False)
OPTIONS: dict[str, Json] = {
    "command": ["mock-agent"],
    "agent": "claude-agent-acp",
    "protocol": 2,
}
REFUSED = AcpRefusal(method="session/prompt", code=-32800, message="Request cancelled")
TERMINAL: Json = {"type": "terminal", "terminalId": "t1"}
CALL: Json = {"type": "tool_call", "toolCallId": "c1"}


class Agent:
    """What an agent reports about one session."""

    def __init__(self, it: Talk, session: str) -> None:
        self.it = it
        self.session = session

    def says(self, *frames: AcpFrame) -> None:
        self.it.says(*frames)

    def heard(self, name: str) -> AcpFrame:
        return update(self.session, UserContent(message_id=name))

    def running(self, *background: Json) -> AcpFrame:
        return update(self.session, StateUpdate(state="running", background=background))

    def idle(
        self, *background: Json, stop_reason: str = "end_turn", error: Json = None
    ) -> AcpFrame:
        usage = None if error else AcpUsage(input_tokens=3)
        end = StateUpdate(
            state="idle", stop_reason=stop_reason, usage=usage, background=background, error=error
        )
        return update(self.session, end)

    def text(self, text: str) -> AcpFrame:
        block = ContentBlock(type="text", text=text)
        return update(self.session, AgentChunk(content=block, message_id=f"of {text}"))

    def takes(self, name: str) -> None:
        """Insert a prompt."""
        self.says(self.heard(name), PromptAccepted(message_id=name), self.running())

    def turn(self, name: str, text: str, stop_reason: str = "end_turn") -> None:
        """Take a prompt and answer it."""
        self.takes(name)
        self.says(self.text(text), self.idle(stop_reason=stop_reason))


async def agent_of(it: Talk) -> Agent:
    """Answer the calls before the prompt."""
    return Agent(it, session_of(await opening(it, HELLO_2)))


async def played_by(script: Script, **wishes: Any) -> Played:
    return await play(script, options=OPTIONS, **wishes)


def texts(played: Played) -> list[str]:
    return [each.content for each in played.of_type("message_received")]


# --- one prompt -----------------------------------------------------------------------------------


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
async def test_the_messages_at_the_start_of_a_turn_come_in_any_order(
    order: tuple[int, ...],
) -> None:
    async def script(it: Talk) -> None:
        agent = await agent_of(it)
        begin = [agent.heard("m1"), PromptAccepted(message_id="m1"), agent.running()]
        for each in order:
            it.says(begin[each])
        it.says(agent.text("Hi."), agent.idle(), agent.idle())

    played = await played_by(script)
    assert (played.result.status, played.result.text) == ("completed", "Hi.")
    assert played.result.usage.input == 3
    assert len(played.of_type("turn_completed")) == 1
    assert played.result.stop_reason == "end_turn"


async def test_the_reply_to_a_prompt_may_be_the_last_message() -> None:
    async def script(it: Talk) -> None:
        agent = await agent_of(it)
        it.says(agent.heard("m1"), agent.running(), agent.text("Hi."), agent.idle())
        it.says(PromptAccepted(message_id="m1"))

    assert (await played_by(script)).result.text == "Hi."


async def test_the_end_of_work_before_the_prompt_does_not_end_the_run() -> None:
    async def script(it: Talk) -> None:
        agent = await agent_of(it)
        it.says(agent.running(), agent.text("Of its own accord."), agent.idle())
        agent.turn("m1", "Answer.")

    played = await played_by(script)
    assert (played.result.status, played.result.text) == ("completed", "Answer.")


async def test_a_server_with_a_command_is_refused_by_an_agent_that_starts_none() -> None:
    async def script(it: Talk) -> None:
        it.says(replace(HELLO_2, capabilities=replace(ALL, mcp_stdio=False)))

    options = {**OPTIONS, "mcp_servers": {"a": {"command": "x"}}}
    kind, message = (await play(script, options=options)).failure
    assert kind == FailureKind.CAPABILITY_MISSING
    assert message.startswith("options.mcp_servers.a: ")


async def test_the_end_of_work_while_the_session_is_opened_ends_nothing() -> None:
    async def script(it: Talk) -> None:
        it.says(HELLO_2)
        call = await call_of(it)
        it.says(SessionOpened(method=call.method, session_id="s1", modes=MODES))
        assert (await call_of(it)).method == "session/set_mode"
        agent = Agent(it, "s1")
        it.says(agent.running(), agent.text("Of its own accord."), agent.idle())
        it.says(update("s1", ModeUpdate(current_mode_id="plan")))
        it.says(Acknowledged(method="session/set_mode"))
        assert (await call_of(it)).method == "session/prompt"
        agent.turn("m1", "Answer.")

    played = await play(script, options={**OPTIONS, "mode": "plan"}, mode="full_auto")
    assert (played.result.status, played.result.text) == ("completed", "Answer.")
    assert len(played.of_type("turn_completed")) == 1


async def test_the_states_of_other_sessions_end_nothing() -> None:
    async def script(it: Talk) -> None:
        agent = await agent_of(it)
        agent.takes("m1")
        child = Agent(it, "child")
        it.says(child.running(), child.idle(), agent.text("Done."), agent.idle())

    assert (await played_by(script)).result.text == "Done."


async def test_a_reply_has_no_deadline(autojump_clock: MockClock) -> None:
    async def script(it: Talk) -> None:
        agent = await agent_of(it)
        it.says(agent.running())
        for _ in range(20):  # it works on something else, and shows that it lives
            await trio.sleep(60)
            it.says(agent.text("x"))
        it.says(agent.idle())
        agent.turn("m1", "Answer.")

    assert (await played_by(script)).result.text == "Answer."


async def test_a_refused_prompt_fails_the_run() -> None:
    async def script(it: Talk) -> None:
        await agent_of(it)
        it.says(AcpRefusal(method="session/prompt", code=401, message="no"))

    assert (await played_by(script)).failure[0] == FailureKind.AUTH_FAILED


async def test_an_error_of_the_turn_fails_the_run() -> None:
    async def script(it: Talk) -> None:
        agent = await agent_of(it)
        error: Json = {"code": 429, "message": "slow down"}
        agent.takes("m1")
        it.says(agent.idle(stop_reason="error", error=error))

    played = await played_by(script)
    assert played.failure[0] == FailureKind.RATE_LIMITED
    assert played.result.stop_reason == "error"


async def test_a_permission_is_asked_for_in_the_turn() -> None:
    answers: list[object] = []

    async def script(it: Talk) -> None:
        agent = await agent_of(it)
        agent.takes("m1")
        it.says(update(agent.session, StateUpdate(state="requires_action")))
        it.says(permission(agent.session, call=ToolCallNews(tool_call_id="c1", title="saw")))
        answers.append(await it.heard())
        it.says(agent.running(), agent.text("Done."), agent.idle())

    assert (await played_by(script, mode="full_auto")).result.text == "Done."
    assert [chosen(each) for each in answers] == ["yes"]


async def test_a_resumed_session_is_in_a_state_before_the_prompt() -> None:
    calls: list[AcpCall] = []

    async def script(it: Talk) -> None:
        it.says(HELLO_2)
        calls.append(call := await call_of(it))
        session = str(call.params.get("sessionId", "s1"))
        agent = Agent(it, session)
        if calls[1:]:
            it.says(agent.heard("m1"), agent.text("First."), agent.idle())
        name = "" if calls[1:] else session
        it.says(SessionOpened(method=call.method, session_id=name, modes=MODES))
        assert (await call_of(it)).method == "session/prompt"
        agent.turn(f"m{len(calls)}", "First." if len(calls) == 1 else "Second.")

    received: list[str] = []
    async with manager_of(script) as (manager, sdk):
        session = await manager.open_session("acp")
        for expected in ("First.", "Second."):
            async with session.start("hi", options=OPTIONS) as run:
                received += [e.content async for e in run if e.type == "message_received"]
                assert (await run.result()).text == expected
            sdk.connections[-1].hang_up()
    assert received == ["First.", "Second."]
    assert [each.method for each in calls] == ["session/new", "session/resume"]


# --- further prompts ------------------------------------------------------------------------------


async def append(
    script: Script, *, is_cancelled: bool = False, waits: float = 0, provider: str = "acp"
) -> Played:
    """Add a message to a run that has reached the gate, and then open the gate."""
    async with manager_of(script) as (manager, sdk):
        session = await manager.open_session(provider, permission_mode="full_auto")
        run = await session.submit("hi", options=OPTIONS)
        await sdk.reached("running")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run.append, "more")
            await trio.testing.wait_all_tasks_blocked()
            await trio.sleep(waits)
            if is_cancelled:
                run.cancel()
            sdk.open_gate("running")
        events = [event async for event in run]
        return Played(await run.result(), events)


def states(played: Played) -> list[str]:
    return [each.state for each in played.of_type("message_sent") if each.content == "more"]


async def queued(it: Talk) -> Agent:
    """Take the first prompt, and receive the second."""
    agent = await agent_of(it)
    agent.takes("m1")
    it.says(agent.text("One."))
    await it.gate("running")
    call = await call_of(it)
    assert (call.method, prompt_of(call)) == ("session/prompt", "more")
    return agent


@pytest.mark.parametrize("provider", ["acp", "acp:claude-agent-acp"])
async def test_a_message_is_a_prompt_that_the_agent_queues(provider: str) -> None:
    async def script(it: Talk) -> None:
        agent = await queued(it)
        it.says(agent.idle())
        agent.turn("m2", "Two.")

    played = await append(script, provider=provider)
    assert (played.result.status, texts(played)) == ("completed", ["One.", "Two."])
    assert states(played) == ["queued", "sent"]
    assert len(played.of_type("turn_completed")) == 2
    assert played.result.usage.input == 6


async def test_more_messages_than_the_queue_holds_become_runs() -> None:
    async def script(it: Talk) -> None:
        agent = await agent_of(it)
        agent.takes("m1")
        it.says(agent.text("One."))
        await it.gate("running")
        for _ in range(MAX_QUEUED):
            await call_of(it)
        it.says(agent.idle())
        for number in range(MAX_QUEUED):
            agent.turn(f"m{2 + number}", f"Text {number}.")

    async with manager_of(script) as (manager, sdk):
        session = await manager.open_session("acp", permission_mode="full_auto")
        run = await session.submit("hi", options=OPTIONS)
        await sdk.reached("running")
        async with trio.open_nursery() as nursery:
            for number in range(MAX_QUEUED + 1):
                nursery.start_soon(run.append, f"more {number}")
            await trio.testing.wait_all_tasks_blocked()
            sdk.open_gate("running")
        await run.result()
        sent = [each async for each in run if each.type == "message_sent" and each.follow_up]
    final = {each.content: each.state for each in sent}
    assert sorted(final.values()) == ["dropped", *(["sent"] * MAX_QUEUED)]


async def test_a_message_may_be_taken_into_the_running_turn() -> None:
    async def script(it: Talk) -> None:
        agent = await queued(it)
        it.says(agent.heard("m2"), PromptAccepted(message_id="m2"), agent.text("Two."))
        it.says(agent.idle())

    played = await append(script)
    assert (states(played), played.result.text) == (["queued", "sent"], "Two.")
    assert len(played.of_type("turn_completed")) == 1


async def test_a_message_that_waits_for_long_is_sent_and_belongs_to_the_run(
    autojump_clock: MockClock,
) -> None:
    async def script(it: Talk) -> None:
        agent = await queued(it)
        await trio.sleep(30)
        it.says(agent.idle())
        agent.turn("m2", "Two.")

    played = await append(script)
    assert (states(played), played.result.text) == (["queued", "sent"], "Two.")


async def test_a_message_that_the_agent_refuses_is_dropped_and_the_run_ends() -> None:
    async def script(it: Talk) -> None:
        agent = await queued(it)
        it.says(agent.idle(), replace(REFUSED, code=-32600))

    played = await append(script)
    assert (played.result.status, states(played)) == ("completed", ["queued", "dropped"])


async def test_cancelling_drops_the_prompts_that_were_not_taken() -> None:
    async def script(it: Talk) -> None:
        agent = await queued(it)
        assert await it.heard() == INTERRUPTED
        it.says(REFUSED, agent.idle(stop_reason="cancelled"))

    played = await append(script, is_cancelled=True)
    assert (played.result.status, states(played)) == ("cancelled", ["queued", "dropped"])


async def test_a_message_that_was_accepted_and_not_taken_is_dropped(
    autojump_clock: MockClock,
) -> None:
    async def script(it: Talk) -> None:
        agent = await queued(it)
        assert await it.heard() == INTERRUPTED
        it.says(REFUSED, agent.idle(stop_reason="cancelled"))

    played = await append(script, is_cancelled=True, waits=30)
    assert (played.result.status, states(played)) == ("cancelled", ["queued", "sent", "dropped"])


async def test_the_failure_of_a_turn_before_the_last_is_an_incident() -> None:
    async def script(it: Talk) -> None:
        agent = await queued(it)
        it.says(agent.idle(stop_reason="refusal"))
        agent.turn("m2", "Two.")

    played = await append(script)
    assert played.result.status == "completed"
    [incident] = played.of_type("error_occurred")
    assert incident.failure.kind == FailureKind.REFUSED


async def test_an_agent_that_steers_gets_the_message_in_its_turn() -> None:
    async def script(it: Talk) -> None:
        call = await opening(it, replace(HELLO_2, steers=True))
        agent = Agent(it, session_of(call))
        agent.takes("m1")
        it.says(agent.text("One."))
        await it.gate("running")
        assert (await call_of(it)).method == "_session/steering"
        it.says(SteeringAnswered(outcome="injected"), agent.heard("m2"))
        it.says(agent.text("Two."), agent.idle())

    played = await append(script)
    assert (states(played), played.result.text) == (["queued", "sent"], "Two.")


async def test_an_agent_that_steers_queues_what_comes_after_the_turn() -> None:
    async def script(it: Talk) -> None:
        call = await opening(it, replace(HELLO_2, steers=True))
        agent = Agent(it, session_of(call))
        agent.takes("m1")
        it.says(agent.text("It runs."), agent.idle(TERMINAL))
        await it.gate("running")
        assert (await call_of(it)).method == "session/prompt"
        agent.takes("m2")
        it.says(agent.text("Two."), agent.idle())

    played = await append(script)
    assert (states(played), played.result.text) == (["queued", "sent"], "Two.")


async def test_a_steering_message_that_is_refused_is_dropped() -> None:
    async def script(it: Talk) -> None:
        call = await opening(it, replace(HELLO_2, steers=True))
        agent = Agent(it, session_of(call))
        agent.takes("m1")
        it.says(agent.text("One."))
        await it.gate("running")
        steering = await call_of(it)
        it.says(AcpRefusal(method=steering.method, code=-32603, message="no"), agent.idle())

    assert states(await append(script)) == ["queued", "dropped"]


# --- cancelling -----------------------------------------------------------------------------------


async def cancelled(script: Script) -> Played:
    """Cancel a run at the gate."""
    async with manager_of(script) as (manager, sdk):
        session = await manager.open_session("acp", permission_mode="full_auto")
        run = await session.submit("hi", options=OPTIONS)
        await sdk.reached("here")
        run.cancel()
        sdk.open_gate("here")
        events = [event async for event in run]
        return Played(await run.result(), events)


async def test_a_run_is_cancelled_before_the_agent_takes_its_prompt() -> None:
    async def script(it: Talk) -> None:
        await agent_of(it)
        await it.gate("here")
        assert await it.heard() == INTERRUPTED
        it.says(REFUSED)

    assert (await cancelled(script)).result.status == "cancelled"


async def test_a_cancelled_run_ends_with_the_idle_state() -> None:
    async def script(it: Talk) -> None:
        agent = await agent_of(it)
        await it.gate("here")
        assert await it.heard() == INTERRUPTED
        agent.turn("m1", "Half.", stop_reason="cancelled")

    played = await cancelled(script)
    assert (played.result.status, texts(played)) == ("cancelled", ["Half."])


async def test_a_turn_that_is_cancelled_before_it_runs_ends_with_the_idle_state() -> None:
    async def script(it: Talk) -> None:
        agent = await agent_of(it)
        it.says(PromptAccepted(message_id="m1"))
        await it.gate("here")
        assert await it.heard() == INTERRUPTED
        it.says(agent.idle(stop_reason="cancelled"))

    result = (await cancelled(script)).result
    assert (result.status, result.stop_reason) == ("cancelled", "cancelled")


CAN_CANCEL: Json = {"cancel": {}}


async def working(it: Talk) -> Agent:
    """Take the prompt, and start some work, part of which can be cancelled."""
    agent = await agent_of(it)
    agent.takes("m1")
    session = agent.session
    it.says(update(session, TerminalNews(terminal_id="t1", capabilities=CAN_CANCEL)))
    it.says(update(session, TerminalNews(terminal_id="t2", capabilities=CAN_CANCEL)))
    it.says(update(session, TerminalNews(terminal_id="t2", capabilities=None)))
    call = ToolCallNews(tool_call_id="c1", status="in_progress", capabilities=CAN_CANCEL)
    it.says(update(session, call))
    it.says(update(session, SubagentUpdate(session_id="child", capabilities=CAN_CANCEL)))
    return agent


@pytest.mark.parametrize(
    ("work", "method"),
    [
        (TERMINAL, "terminal/cancel"),
        (CALL, "tool_call/cancel"),
        ({"type": "subagent", "sessionId": "child"}, "session/cancel"),
    ],
)
@pytest.mark.parametrize("is_idle", [False, True])
async def test_work_in_the_background_is_cancelled_with_its_run(
    work: Json, method: str, *, is_idle: bool
) -> None:
    heard: list[object] = []

    async def script(it: Talk) -> None:
        agent = await working(it)
        if is_idle:
            it.says(agent.idle(work))
        await it.gate("here")
        assert await it.heard() == INTERRUPTED
        await trio.testing.wait_all_tasks_blocked()
        if not is_idle:  # the work shows up as the foreground is cancelled
            it.says(agent.idle(work, stop_reason="cancelled"))
        heard.append(await it.heard())
        it.says(agent.idle(work), Acknowledged(method=method))
        await trio.testing.wait_all_tasks_blocked()
        it.says(agent.idle())
        heard.extend(it.heard_so_far[-2:])

    assert (await cancelled(script)).result.status == "cancelled"
    call, *last = heard
    assert isinstance(call, AcpCall)
    assert call.method == method
    assert last == [INTERRUPTED, call]


async def test_a_session_whose_work_was_cancelled_is_opened_anew() -> None:
    async def script(it: Talk) -> None:
        if sdk.connections[0].conversations[1:]:
            agent = await agent_of(it)
            agent.turn("m2", "Again.")
            return
        agent = await working(it)
        it.says(agent.idle(TERMINAL))
        await it.gate("here")
        assert await it.heard() == INTERRUPTED
        await it.heard()
        it.says(agent.idle())

    async with manager_of(script) as (manager, sdk):
        session = await manager.open_session("acp")
        run = await session.submit("hi", options=OPTIONS)
        await sdk.reached("here")
        run.cancel()
        sdk.open_gate("here")
        assert (await run.result()).status == "cancelled"
        async with session.start("again", options=OPTIONS) as run:
            assert (await run.result()).text == "Again."
        [connection] = sdk.connections
        assert [each.is_kept for each in connection.conversations] == [False, True]


async def test_a_process_with_work_in_the_background_is_not_used_again() -> None:
    async def script(it: Talk) -> None:
        agent = await agent_of(it)
        if len(sdk.connections) > 1:
            agent.turn("m2", "Again.")
        else:
            it.says(agent.running(TERMINAL))
            it.says(AcpRefusal(method="session/prompt", code=-32603, message="no"))

    async with manager_of(script) as (manager, sdk):
        session = await manager.open_session("acp")
        for expected in ("failed", "completed"):
            async with session.start("hi", options=OPTIONS) as run:
                assert (await run.result()).status == expected
        assert len(sdk.connections) == 2


async def test_work_that_cannot_be_cancelled_ends_with_its_process(
    autojump_clock: MockClock,
) -> None:
    async def script(it: Talk) -> None:
        agent = await agent_of(it)
        if len(sdk.connections) > 1:
            agent.turn("m2", "Again.")
            return
        agent.takes("m1")
        it.says(agent.text("It runs."), agent.idle(TERMINAL, CALL, {"type": "newer"}))
        await it.gate("here")
        assert await it.heard() == INTERRUPTED

    async with manager_of(script) as (manager, sdk):
        session = await manager.open_session("acp")
        run = await session.submit("hi", options=OPTIONS)
        await sdk.reached("here")
        run.cancel()
        sdk.open_gate("here")
        assert (await run.result()).status == "cancelled"
        async with session.start("again", options=OPTIONS) as run:
            assert (await run.result()).text == "Again."
        assert len(sdk.connections) == 2


# --- work in the background -----------------------------------------------------------------------


async def test_a_run_lasts_until_its_work_in_the_background_has_ended(
    autojump_clock: MockClock,
) -> None:
    async def script(it: Talk) -> None:
        agent = await agent_of(it)
        agent.turn("m1", "It runs.")

    async def working(it: Talk) -> None:
        agent = await agent_of(it)
        agent.takes("m1")
        it.says(agent.text("It runs."), agent.idle(TERMINAL))
        await trio.sleep(20)
        it.says(agent.idle())

    quick, slow = trio.current_time(), 0.0
    assert (await played_by(script)).result.text == "It runs."
    quick, slow = trio.current_time() - quick, trio.current_time()
    played = await played_by(working)
    assert (played.result.status, played.result.text) == ("completed", "It runs.")
    assert (trio.current_time() - slow) - quick >= 20
    assert [each.open_tasks for each in played.of_type("turn_completed")] == [1]


@pytest.mark.parametrize("while_it_runs", [False, True])
async def test_an_agent_may_continue_after_work_in_the_background(
    autojump_clock: MockClock, *, while_it_runs: bool
) -> None:
    async def script(it: Talk) -> None:
        agent = await agent_of(it)
        agent.takes("m1")
        it.says(agent.running(TERMINAL), agent.text("It runs."))
        it.says(agent.running() if while_it_runs else agent.idle(TERMINAL))
        it.says(agent.idle())
        await trio.sleep(1)
        it.says(agent.running(), agent.text("It has ended."))
        await trio.sleep(10)
        it.says(agent.idle())

    played = await played_by(script)
    assert (played.result.status, played.result.text) == ("completed", "It has ended.")
    tasks = [each.open_tasks for each in played.of_type("turn_completed")]
    assert tasks == [0 if while_it_runs else 1, 0]


async def test_updates_of_work_in_the_background_are_no_turn() -> None:
    async def script(it: Talk) -> None:
        agent = await agent_of(it)
        agent.takes("m1")
        it.says(agent.text("It runs."), agent.idle(CALL))
        it.says(
            update(agent.session, ToolCallNews(tool_call_id="c1", title="dig", status="pending")),
            update(agent.session, ToolCallNews(tool_call_id="c1", status="completed")),
            agent.idle(CALL),
            agent.running(CALL),
            agent.text("Done."),
            agent.idle(),
        )

    played = await played_by(script)
    tasks = [each.open_tasks for each in played.of_type("turn_completed")]
    assert tasks == [1, 0]
    assert len(played.of_type("tool_call_completed")) == 1


# --- the choice of the version --------------------------------------------------------------------


async def test_the_record_has_the_version_that_is_spoken() -> None:
    async def script(it: Talk) -> None:
        (await agent_of(it)).turn("m1", "Hi.")

    [started] = (await played_by(script)).of_type("run_started")
    assert started.cli_version == "1.2.3 (ACP 2)"


async def test_an_agent_may_answer_the_offer_of_version_2_in_version_1() -> None:
    modes = SessionModes(
        current="agent-full-access", available=(SessionMode(id="agent-full-access"),)
    )

    async def script(it: Talk) -> None:
        call = await opening(it, modes=modes)
        it.says(Agent(it, session_of(call)).text("Hi."), ended())

    options: dict[str, Json] = {"protocol": "auto"}
    played = await play(script, provider="acp:codex-acp", mode="full_auto", options=options)
    assert (played.result.status, played.result.text) == ("completed", "Hi.")
