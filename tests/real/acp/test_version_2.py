"""Runs in version 2 of the protocol, by the agents that speak it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from sessionmgr.adapter import Allow, ApprovalRequest, Decision, Deny
from sessionmgr.manager import Manager, RunHandle, SessionHandle, open_manager
from sessionmgr.model import AnyEvent, FailureKind, Json, PermissionMode, RunResult, RunStatus
from sessionmgr.store import MemoryStore
from sessionmgr.testing.model_server import (
    IsolatedEnvironment,
    ModelCall,
    ModelHang,
    ModelSay,
    ModelScript,
    prompt_with,
)
from sessionmgr.testing.player import Recording, recorder_of
from tests.real.acp.agents import InstalledAcpAgent, installed_agent
from tests.real.acp.contract import Side, contract_of

PATIENCE = 120
SPEAKERS = ["claude-agent-acp", "codex-acp"]


@pytest.fixture(params=SPEAKERS)
def speaker(request: pytest.FixtureRequest) -> InstalledAcpAgent:
    return installed_agent(request.param)


class SpeakerSession:
    """A session of an agent in version 2, and what the agent has asked."""

    def __init__(self, handle: SessionHandle, agent: InstalledAcpAgent) -> None:
        self.handle = handle
        self.asked: list[ApprovalRequest] = []
        self.undecided = False
        self.options: dict[str, Json] = {"command": [*agent.command], "protocol": "auto"}

    def start(self, script: ModelScript, text: str = "Answer.") -> Any:
        return self.handle.start(prompt_with(script, text), options=self.options)

    async def result(self, script: ModelScript, text: str = "Answer.") -> RunResult:
        async with self.start(script, text) as run:
            result: RunResult = await run.result()
            return result


@asynccontextmanager
async def open_manager_of(
    agent: InstalledAcpAgent, isolated: IsolatedEnvironment, store: MemoryStore | None = None
) -> AsyncGenerator[Manager]:
    environment = agent.environment(isolated)
    with trio.fail_after(PATIENCE):
        async with open_manager(store=store or MemoryStore(), environ=environment) as manager:
            yield manager


async def session_in(
    manager: Manager,
    agent: InstalledAcpAgent,
    isolated: IsolatedEnvironment,
    mode: str = "full_auto",
    answer: Decision | None = None,
) -> SpeakerSession:
    async def approve(request: ApprovalRequest) -> Decision:
        assert answer is not None
        session.asked.append(request)
        if session.undecided:
            await trio.sleep_forever()
        return answer

    handle = await manager.open_session(
        f"acp:{agent.id}",
        cwd=isolated.work,
        permission_mode=PermissionMode(mode),
        approve=None if answer is None else approve,
    )
    session = SpeakerSession(handle, agent)
    return session


async def events_of(run: RunHandle) -> list[AnyEvent]:
    return [event async for event in run]


def says(text: str) -> ModelScript:
    return [[ModelSay(text=text)]]


SLOW: ModelScript = [[ModelSay(text="one two three four", deltas=4, pause=0.7)]]
WRITE: ModelScript = [
    [ModelCall(tool="shell", input={"command": "echo made here > made.txt"})],
    [ModelSay(text="Done.")],
]


async def test_prompts_are_answered_and_a_new_process_continues(
    speaker: InstalledAcpAgent, hermitage: IsolatedEnvironment
) -> None:
    store = MemoryStore()
    async with open_manager_of(speaker, hermitage, store) as manager:
        session = await session_in(manager, speaker, hermitage)
        async with session.start(says("First.")) as run:
            events = await events_of(run)
            first = await run.result()
        [started] = [each for each in events if each.type == "run_started"]
        assert started.cli_version == f"{speaker.version} (ACP 2)"
        assert (first.status, first.text) == (RunStatus.COMPLETED, "First.")
        assert first.usage.output
        second = await session.result(says("Second."))
    async with open_manager_of(speaker, hermitage, store) as manager:
        handle = await manager.session(session.handle.id)
        async with handle.start(prompt_with(says("Third.")), options=session.options) as run:
            events = await events_of(run)
            third = await run.result()
    assert [each.text for each in (second, third)] == ["Second.", "Third."]
    assert [each.content for each in events if each.type == "message_received"] == ["Third."]
    assert len({each.provider_session_id for each in (first, second, third)}) == 1


@pytest.mark.parametrize("is_allowed", [True, False], ids=["allowed", "denied"])
async def test_a_tool_runs_if_it_is_allowed(
    speaker: InstalledAcpAgent, hermitage: IsolatedEnvironment, *, is_allowed: bool
) -> None:
    answer: Decision = Allow() if is_allowed else Deny()
    outside = hermitage.root / "outside.txt"
    command = f"echo x > {outside}"
    calls = {
        "claude-agent-acp": ModelCall(tool="shell", input={"command": command}),
        "codex-acp": ModelCall(
            tool="exec_command",
            input={
                "cmd": command,
                "sandbox_permissions": "require_escalated",
                "justification": "May I?",
            },
        ),
    }
    script: ModelScript = [[calls[speaker.id]], [ModelSay(text="Done.")]]
    async with open_manager_of(speaker, hermitage) as manager:
        session = await session_in(manager, speaker, hermitage, "default", answer)
        result = await session.result(script)
    assert result.status is RunStatus.COMPLETED
    assert outside.exists() == is_allowed
    assert [str(outside) in str(each.tool_input) for each in session.asked] == [True]


async def test_plan_mode_writes_nothing(
    speaker: InstalledAcpAgent, hermitage: IsolatedEnvironment
) -> None:
    async with open_manager_of(speaker, hermitage) as manager:
        session = await session_in(manager, speaker, hermitage, "plan")
        assert (await session.result(WRITE)).status is RunStatus.COMPLETED
    assert list(hermitage.work.iterdir()) == []


async def test_a_run_is_cancelled_while_the_model_speaks_and_the_session_goes_on(
    speaker: InstalledAcpAgent, hermitage: IsolatedEnvironment
) -> None:
    async with open_manager_of(speaker, hermitage) as manager:
        session = await session_in(manager, speaker, hermitage)
        half: ModelScript = [[ModelSay(text="Half of it.", whole=False), ModelHang()]]
        async with session.start(half) as run:
            async for event in run:
                if event.type == "message_streamed":
                    run.cancel()
            cancelled = await run.result()
        last = await session.result(says("It goes on."))
    assert (cancelled.status, last.text) == (RunStatus.CANCELLED, "It goes on.")
    assert last.provider_session_id == cancelled.provider_session_id


async def test_a_run_is_cancelled_in_a_tool(
    speaker: InstalledAcpAgent, hermitage: IsolatedEnvironment
) -> None:
    waits: ModelScript = [
        [ModelCall(tool="shell", input={"command": "echo begun; sleep 60; echo no > made.txt"})],
        [ModelSay(text="Done.")],
    ]
    async with open_manager_of(speaker, hermitage) as manager:
        session = await session_in(manager, speaker, hermitage)
        async with session.start(waits) as run:
            async for event in run:
                if event.type == "tool_call_started":
                    run.cancel()
            assert (await run.result()).status is RunStatus.CANCELLED
        assert (await session.result(says("It goes on."))).text == "It goes on."
    assert list(hermitage.work.iterdir()) == []


async def test_a_run_is_cancelled_while_it_asks(
    hermitage: IsolatedEnvironment,
) -> None:
    agent = installed_agent("claude-agent-acp")
    async with open_manager_of(agent, hermitage) as manager:
        session = await session_in(manager, agent, hermitage, "default", Allow())
        session.undecided = True
        async with session.start(WRITE) as run:
            async for event in run:
                if event.type == "tool_approval_requested":
                    run.cancel()
            assert (await run.result()).status is RunStatus.CANCELLED
        assert (await session.result(says("It goes on."))).text == "It goes on."
    assert list(hermitage.work.iterdir()) == []


async def test_what_is_sent_and_received_follows_the_protocol(
    speaker: InstalledAcpAgent, hermitage: IsolatedEnvironment
) -> None:
    file = hermitage.root / "recorded.jsonl"
    async with open_manager_of(speaker, hermitage) as manager:
        session = await session_in(manager, speaker, hermitage)
        session.options["command"] = [*recorder_of(file, speaker.command)]
        assert (await session.result(WRITE)).text == "Done."
        await appended(session, says("The second."))
        half: ModelScript = [[ModelSay(text="Half of it.", whole=False), ModelHang()]]
        async with session.start(half) as run:
            async for event in run:
                if event.type == "message_streamed":
                    run.cancel()
    sides: dict[str, Side] = {">": "client", "<": "agent"}
    traffic: list[tuple[Side, Any]] = [
        (sides[each.dir], each.msg) for each in Recording.read(file).entries if each.dir in sides
    ]
    sent = [message.get("method") for side, message in traffic if side == "client"]
    assert {"initialize", "session/new", "session/prompt", "session/cancel"} <= {*sent}
    # The handshake serves agents of version 1, too; an option's value depends on its type.
    extra = {
        "client: initialize: no field clientInfo",
        "client: initialize: no field clientCapabilities",
        "client: session/set_config_option: no field type",
        "client: session/set_config_option: no field value",
    }
    assert {*contract_of(2, "unstable").faults(traffic)} <= extra


async def appended(
    session: SpeakerSession, script: ModelScript
) -> tuple[RunResult, list[AnyEvent]]:
    """Add a message to a run that speaks."""
    async with session.start(SLOW) as run, trio.open_nursery() as nursery:
        events: list[AnyEvent] = []
        async for event in run:
            if event.type == "message_streamed" and not any(e.type == event.type for e in events):
                nursery.start_soon(run.append, prompt_with(script, "More."))
            events.append(event)
        return await run.result(), events


def texts(events: list[AnyEvent]) -> list[str]:
    return [each.content for each in events if each.type == "message_received"]


def states(events: list[AnyEvent]) -> list[str]:
    return [each.state for each in events if each.type == "message_sent" and each.follow_up]


async def test_a_message_is_a_queued_prompt_of_the_same_run(
    hermitage: IsolatedEnvironment,
) -> None:
    agent = installed_agent("claude-agent-acp")
    async with open_manager_of(agent, hermitage) as manager:
        session = await session_in(manager, agent, hermitage)
        result, events = await appended(session, says("The second."))
    assert result.status is RunStatus.COMPLETED
    assert texts(events) == ["one two three four", "The second."]
    assert [each.type for each in events].count("turn_completed") == 2
    assert states(events)[-1] == "sent"


async def test_a_message_steers_the_turn_of_codex_acp(hermitage: IsolatedEnvironment) -> None:
    agent = installed_agent("codex-acp")
    async with open_manager_of(agent, hermitage) as manager:
        session = await session_in(manager, agent, hermitage)
        result, events = await appended(session, says("The second."))
    assert (result.status, result.text) == (RunStatus.COMPLETED, "The second.")
    assert [each.type for each in events].count("turn_completed") == 1
    assert states(events)[-1] == "sent"


async def test_two_sessions_of_one_process_run_at_once(
    speaker: InstalledAcpAgent, hermitage: IsolatedEnvironment
) -> None:
    results: list[RunResult] = []
    async with open_manager_of(speaker, hermitage) as manager:
        sessions = [await session_in(manager, speaker, hermitage) for _ in range(2)]

        async def run(session: SpeakerSession) -> None:
            results.append(await session.result(SLOW))

        async with trio.open_nursery() as nursery:
            for each in sessions:
                nursery.start_soon(run, each)
    assert [each.text for each in results] == ["one two three four"] * 2
    assert len({each.provider_session_id for each in results}) == 2


BACKGROUND: ModelScript = [
    [
        ModelCall(
            tool="Bash",
            input={
                "command": "until [ -e go ]; do sleep 0.1; done",
                "description": "wait",
                "run_in_background": True,
            },
        )
    ],
    [ModelSay(text="It runs.")],
    [ModelSay(text="It has ended.")],
]


async def test_a_run_lasts_as_long_as_its_work_in_the_background(
    hermitage: IsolatedEnvironment,
) -> None:
    agent = installed_agent("claude-agent-acp")
    async with open_manager_of(agent, hermitage) as manager:
        session = await session_in(manager, agent, hermitage)
        async with session.start(BACKGROUND) as run:
            events: list[AnyEvent] = []
            async for event in run:
                events.append(event)
                if event.type == "turn_completed":
                    await trio.Path(hermitage.work / "go").touch()
            result = await run.result()
    assert (result.status, result.text) == (RunStatus.COMPLETED, "It has ended.")
    ends = [each.open_tasks for each in events if each.type == "turn_completed"]
    assert ends == [1, 0]


async def test_work_in_the_background_is_cancelled_with_its_run(
    hermitage: IsolatedEnvironment,
) -> None:
    agent = installed_agent("claude-agent-acp")
    async with open_manager_of(agent, hermitage) as manager:
        session = await session_in(manager, agent, hermitage)
        async with session.start(BACKGROUND) as run:
            async for event in run:
                if event.type == "turn_completed":
                    run.cancel()
            assert (await run.result()).status is RunStatus.CANCELLED
        assert (await session.result(says("It goes on."))).text == "It goes on."


SUBAGENT = ModelCall(
    tool="Agent",
    input={
        "description": "Look",
        "prompt": prompt_with(
            [
                [ModelCall(tool="shell", input={"command": "echo made here > made.txt"})],
                [ModelSay(text="The file is made.")],
            ],
            "Make it.",
        ),
        "subagent_type": "general-purpose",
        "run_in_background": True,
    },
)


async def test_a_sub_agent_in_the_background_asks_and_reports(
    hermitage: IsolatedEnvironment,
) -> None:
    agent = installed_agent("claude-agent-acp")
    script: ModelScript = [[SUBAGENT], [ModelSay(text="It runs.")], [ModelSay(text="It is made.")]]
    async with open_manager_of(agent, hermitage) as manager:
        session = await session_in(manager, agent, hermitage, "default", Allow())
        async with session.start(script) as run:
            events = await events_of(run)
            result = await run.result()
    assert (result.status, result.text) == (RunStatus.COMPLETED, "It is made.")
    assert (hermitage.work / "made.txt").exists()
    assert len(session.asked) == 1
    assert "tool_call_failed" not in [each.type for each in events]
    [said] = [
        e for e in events if e.type == "message_received" and e.content == "The file is made."
    ]
    assert isinstance(said.parent_tool_call_id, str)


async def test_a_sub_agent_in_the_background_is_cancelled_with_its_run(
    hermitage: IsolatedEnvironment,
) -> None:
    agent = installed_agent("claude-agent-acp")
    script: ModelScript = [[SUBAGENT], [ModelSay(text="It runs.")], [ModelSay(text="It is made.")]]
    async with open_manager_of(agent, hermitage) as manager:
        session = await session_in(manager, agent, hermitage, "default", Allow())
        session.undecided = True
        async with session.start(script) as run:
            async for event in run:
                if event.type == "turn_completed":
                    run.cancel()
            assert (await run.result()).status is RunStatus.CANCELLED
        assert (await session.result(says("It goes on."))).text == "It goes on."
    assert list(hermitage.work.iterdir()) == []


async def test_an_agent_that_only_echoes_version_2_is_refused(
    hermitage: IsolatedEnvironment,
) -> None:
    agent = installed_agent("goose")
    environment = agent.environment(hermitage)
    options: dict[str, Json] = {
        "agent": "claude-agent-acp",
        "command": [*agent.command],
        "protocol": 2,
    }
    with trio.fail_after(PATIENCE):
        async with open_manager(store=MemoryStore(), environ=environment) as manager:
            handle = await manager.open_session(
                "acp", cwd=hermitage.work, permission_mode=PermissionMode.FULL_AUTO
            )
            async with handle.start("hi", options=options, env=environment) as run:
                failure = (await run.result()).failure
    assert failure is not None
    assert failure.kind is FailureKind.CONFIG_INVALID
    assert failure.message == "options.protocol: the agent speaks version 1 of ACP, not 2; use 1"
