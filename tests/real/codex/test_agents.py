"""Agents that a model calls: they belong to the run, and end with it."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec
import trio

from sessionmgr.adapter import Allow, ApprovalRequest, Decision
from sessionmgr.manager import RunHandle, SessionHandle
from sessionmgr.model import MessageReceived, TokenUsageUpdated, ToolCallCompleted, ToolCallStarted
from sessionmgr.testing.model_server import (
    ModelCall,
    ModelReply,
    ModelRequest,
    ModelSay,
    ModelScript,
    ModelUse,
    open_model_server,
)
from sessionmgr.testing.model_server.isolated_env import IsolatedEnvironment
from tests.real.codex.harness import open_house
from tests.real.harness import RealAgentHarness, roots, see, until, until_event, with_word

MODEL: Final = "gpt-6.1-sol"
FURTHER: Final = ModelCall(
    tool="collaboration__followup_task", input={"target": "outer", "message": "Do more."}
)
SPENT: Final = ModelUse(input=1000, output=10)


def agents_say(tasks: dict[str, ModelScript]) -> Callable[[ModelRequest], ModelReply | None]:
    """Make agents follow their own scripts, selected by words of their tasks."""
    turns: Counter[str] = Counter()

    def reply(request: ModelRequest) -> ModelReply | None:
        said = msgspec.json.encode(request.body["input"]).decode()
        for word, script in tasks.items():
            if word in said and "<script>" not in said:
                turns[request.session] += 1
                return script[min(turns[request.session], len(script)) - 1]
        return None

    return reply


@asynccontextmanager
async def a_house(
    tasks: dict[str, ModelScript], program: Path, tmp_path: Path
) -> AsyncGenerator[RealAgentHarness, None]:
    async with open_model_server(agents_say(tasks)) as server:
        hermitage = IsolatedEnvironment(tmp_path, server.url)
        env = hermitage.codex(retries=1)
        async with open_house(server, program, hermitage.work, env) as house:
            yield house
    assert server.log.strangers == []


def calls(task: str) -> ModelCall:
    given = {"message": f"do {task}", "task_name": task.lower(), "fork_turns": "none"}
    return ModelCall(tool="collaboration__spawn_agent", input=dict(given))


def runs(command: str) -> ModelCall:
    """Return the call of a command with a short wait by the model."""
    return ModelCall(tool="exec_command", input={"cmd": command, "yield_time_ms": 250})


WAITS: Final = ModelCall(tool="collaboration__wait_agent", input={"timeout_ms": 60_000})


async def at_work(house: RealAgentHarness, word: str) -> tuple[SessionHandle, RunHandle]:
    """Start a run in which an agent, and an agent of that agent, both run a command."""
    session = await house.session("dangerously_skip_permissions")
    run = await house.submit(session, [[calls("OUTER")], [WAITS]], model=MODEL)
    await until(lambda: len(roots(with_word(word))) >= 2)
    return session, run


async def test_a_cancel_ends_agents_and_what_they_do(newest: Path, tmp_path: Path) -> None:
    word = f"word-{uuid.uuid4().hex}"
    idle = runs(f"tail -f /dev/null; : {word}")
    tasks: dict[str, ModelScript] = {"OUTER": [[calls("INNER")], [idle]], "INNER": [[idle]]}
    async with a_house(tasks, newest, tmp_path) as house:
        session, run = await at_work(house, word)
        run.cancel("enough")
        result = await run.result()
        assert (result.status, result.detail) == ("cancelled", "enough"), result.failure
        await until(lambda: not with_word(word))
        before = len(house.server.log.asked)
        slow: ModelScript = [[ModelSay(text="All is well.", deltas=10, pause=0.1)]]
        after = await house.play(slow, session, model=MODEL)
        assert after.result.status == "completed", after.result.failure
        later = house.server.log.asked[before:]
        assert [each.session for each in later] == [result.provider_session_id]
        assert with_word(word) == []


async def test_a_run_waits_for_its_agents_and_leaves_nothing_of_theirs(
    newest: Path, tmp_path: Path
) -> None:
    word = f"word-{uuid.uuid4().hex}"
    idle = runs(f"tail -f /dev/null; : {word}")
    short = ModelCall(tool="exec_command", input={"cmd": "true"})
    gate = tmp_path / "gate"
    last = ModelSay(text="ha", until=str(gate))
    tasks: dict[str, ModelScript] = {"OUTER": [[idle, SPENT], [short, SPENT], [last, SPENT]]}
    async with a_house(tasks, newest, tmp_path) as house:
        session = await house.session("dangerously_skip_permissions")
        script: ModelScript = [[calls("OUTER"), SPENT], [ModelSay(text="Mine is done."), SPENT]]
        run = await house.submit(session, script, model=MODEL)
        await until_event(run, "turn_completed")
        gate.touch()
        played = await see(run)
        result = played.result
        assert (result.status, result.text) == ("completed", "Mine is done."), result.failure
        await until(lambda: not with_word(word))
        assert (result.usage.input, result.usage.output) == (5000, 50)
        called = next(each for each in played.events if isinstance(each, ToolCallStarted))
        assert called.tool_name == "spawn_agent"
        booked = [each for each in played.events if isinstance(each, TokenUsageUpdated)]
        of_agents = [each.parent_tool_call_id == called.tool_call_id for each in booked]
        assert Counter(of_agents) == {True: 3, False: 2}
        done = [each for each in played.events if isinstance(each, ToolCallCompleted)]
        assert "shell" in [each.tool_name for each in done if each.parent_tool_call_id]
        messages = [each for each in played.events if isinstance(each, MessageReceived)]
        assert [each.content for each in messages if each.parent_tool_call_id] == ["ha"]


async def test_what_an_agent_wants_to_do_is_asked(newest: Path, tmp_path: Path) -> None:
    asked: list[ApprovalRequest] = []

    async def approve(request: ApprovalRequest) -> Decision:
        await trio.lowlevel.checkpoint()
        asked.append(request)
        return Allow()

    outside = tmp_path / "outside"
    wish = {"cmd": f"touch {outside}", "sandbox_permissions": "require_escalated"}
    wants = ModelCall(tool="exec_command", input={**wish, "justification": "May I?"})
    tasks: dict[str, ModelScript] = {"OUTER": [[wants], [ModelSay(text="I was let.")]]}
    async with a_house(tasks, newest, tmp_path) as house:
        session = await house.session(approve=approve)
        script: ModelScript = [[calls("OUTER")], [ModelSay(text="done")]]
        played = await house.play(script, session, model=MODEL)
        assert played.result.status == "completed", played.result.failure
        assert [each.tool_input for each in asked] == [
            {"command": wish["cmd"], "cwd": str(house.work)}
        ]
        assert outside.exists()


async def test_an_agent_of_an_earlier_run_may_do_no_more_than_the_run_that_it_works_for(
    newest: Path, tmp_path: Path
) -> None:
    file = tmp_path / "work" / "file"
    touches = ModelCall(tool="exec_command", input={"cmd": f"touch {file}"})
    tasks: dict[str, ModelScript] = {
        "OUTER": [[ModelSay(text="first")], [touches], [ModelSay(text="second")]]
    }
    async with a_house(tasks, newest, tmp_path) as house:
        session = await house.session("dangerously_skip_permissions")
        script: ModelScript = [
            [calls("OUTER")],
            [ModelSay(text="one")],
            [FURTHER],
            [ModelSay(text="two")],
        ]
        assert (await house.play(script, session, model=MODEL)).result.text == "one"
        run = await house.submit(session, "Go on.", model=MODEL, permission_mode="plan")
        events = [event async for event in run]
        assert (await run.result()).text == "two"
        messages = [each.content for each in events if isinstance(each, MessageReceived)]
        assert "second" in messages
        assert not file.exists()


async def test_an_agent_of_an_earlier_run_is_is_there_for_the_next(
    newest: Path, tmp_path: Path
) -> None:
    tasks: dict[str, ModelScript] = {"OUTER": [[ModelSay(text="first")], [ModelSay(text="second")]]}
    async with a_house(tasks, newest, tmp_path) as house:
        session = await house.session("plan")
        script: ModelScript = [
            [calls("OUTER")],
            [ModelSay(text="one")],
            [FURTHER],
            [ModelSay(text="two")],
        ]
        told: list[list[str]] = []
        for text in ("one", "two"):
            run = await house.submit(session, script if text == "one" else "Go on.", model=MODEL)
            events = [event async for event in run]
            assert (await run.result()).text == text
            messages = [each for each in events if isinstance(each, MessageReceived)]
            told.append([each.content for each in messages if each.parent_tool_call_id])
        assert told == [["first"], ["second"]]
