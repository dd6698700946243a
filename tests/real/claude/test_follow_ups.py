"""Messages to a running turn of a real Claude Code: each is read once, and answered."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
import trio

from sessionmgr.manager import FollowUp, RunHandle, SessionHandle
from sessionmgr.model import Json, MessageSent, RunStatus
from sessionmgr.testing.model_server import (
    ModelCall,
    ModelReply,
    ModelRequest,
    ModelSay,
    ModelScript,
    UserPrompt,
    open_model_server,
    prompt_with,
)
from sessionmgr.testing.model_server.isolated_env import IsolatedEnvironment
from tests.real.claude.harness import RealAgentHarness, open_house, until_event

SLOW = "one two three four five six seven eight nine ten "


def in_text(gate: Path) -> ModelScript:
    """Return a script that is in the middle of a text until the file exists."""
    return [[ModelSay(text=SLOW, deltas=10, until=str(gate))]]


def in_a_tool(gate: Path) -> ModelScript:
    """Return a script that is in a tool call until the file exists."""
    waits = f"until [ -e {gate} ]; do sleep 0.05; done"
    return [[ModelCall(tool="shell", input={"command": waits})], [ModelSay(text="I heard")]]


SIGNS: Final[dict[Callable[[Path], ModelScript], str]] = {
    in_text: "message_streamed",
    in_a_tool: "tool_call_started",
}
"""Events that show that the script is there."""


async def started(
    house: RealAgentHarness,
    script: ModelScript,
    sign: str,
    *,
    session: SessionHandle | None = None,
    **options: Json,
) -> RunHandle:
    session = session or await house.session("full_auto")
    run = await session.submit(prompt_with(script), options=house.options(**options))
    async for event in run:
        if event.type == sign:
            return run
    raise AssertionError(f"it ended without {sign}: {await run.result()}")


def heard(house: RealAgentHarness, text: str) -> int:
    """Return how often the last request contains a message: the model repeats it in its answers."""
    messages = house.server.log.asked[-1].body["messages"]
    assert isinstance(messages, list)
    said = [each for each in messages if isinstance(each, dict) and each["role"] != "assistant"]
    return str(said).count(text)


async def ends(run: RunHandle, follow_ups: list[FollowUp]) -> None:
    result = await run.result()
    assert result.status is RunStatus.COMPLETED, result.failure
    for each in follow_ups:
        assert (await each.run.result()).status is RunStatus.COMPLETED
    sent = [each async for each in run if isinstance(each, MessageSent) and each.follow_up]
    assert not [each for each in sent if each.state == "unknown"]


async def test_in_text_it_is_answered_in_a_turn_of_its_own(any_house: RealAgentHarness) -> None:
    gate = any_house.gate()
    run = await started(any_house, in_text(gate), "message_streamed")
    follow_up = await run.append("and then this")
    gate.touch()
    assert follow_up.accepted
    assert follow_up.run.id == run.id
    await ends(run, [follow_up])
    assert (await run.result()).text == "You said: and then this"
    assert heard(any_house, "and then this") == 1
    assert (await run.result()).turns == 2


async def test_in_a_tool_it_is_heard_within_the_turn(any_house: RealAgentHarness) -> None:
    gate = any_house.gate()
    run = await started(any_house, in_a_tool(gate), "tool_call_started")
    follow_up = await run.append("use blue")
    gate.touch()
    assert follow_up.accepted
    await ends(run, [follow_up])
    assert any("use blue" in str(each.body["messages"]) for each in any_house.server.log.asked)
    assert heard(any_house, "use blue") == 1


async def test_several_at_once_are_each_heard_once(any_house: RealAgentHarness) -> None:
    gate = any_house.gate()
    run = await started(any_house, in_text(gate), "message_streamed")
    follow_ups: list[FollowUp] = []

    async def one(text: str) -> None:
        follow_ups.append(await run.append(text))

    async with trio.open_nursery() as nursery:
        for text in ("first more", "second more", "third more"):
            nursery.start_soon(one, text)
    gate.touch()
    assert all(each.accepted for each in follow_ups)
    await ends(run, follow_ups)
    for text in ("first more", "second more", "third more"):
        assert heard(any_house, text) == 1, text


async def test_one_that_is_for_now_ends_the_turn(house: RealAgentHarness) -> None:
    run = await started(house, in_a_tool(house.gate()), "tool_call_started", follow_up="now")
    follow_up = await run.append("stop that")
    assert follow_up.accepted
    await ends(run, [follow_up])
    assert (await run.result()).turns == 2
    assert heard(house, "stop that") >= 1


async def test_one_that_comes_while_the_context_is_shortened_is_heard_after_that(
    newest: Path, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"

    def held(request: ModelRequest) -> ModelReply | None:
        summary = ModelSay(text="<summary>It was short.</summary>", until=str(gate))
        return [summary] if request.purpose == "compaction" else None

    async with open_model_server(held) as server:
        hermitage = IsolatedEnvironment(tmp_path, server.url)
        env = {**hermitage.claude(retries=1), "IS_SANDBOX": "1"}
        async with open_house(server, newest, hermitage.work, env) as house:
            await _hear_after_compaction(house, gate)
    assert server.log.strangers == []


async def _hear_after_compaction(house: RealAgentHarness, gate: Path) -> None:
    session = await house.session()
    options = house.options(slash_commands=True)
    await house.play([[ModelSay(text="one")]], session, options=options)
    run = await house.submit(session, "/compact", options=options)
    await until_event(run, "compaction_started")
    follow_up = await run.append("and then this")
    gate.touch()
    types = [event.type async for event in run]
    assert follow_up.accepted
    await ends(run, [follow_up])
    assert (await run.result()).text == "You said: and then this"
    assert heard(house, "and then this") == 1
    assert "compaction_completed" in types
    last = [(each.purpose, "and then this" in str(each.body)) for each in house.server.log.asked]
    assert last[-2:] == [("compaction", False), ("turn", True)]


async def test_one_that_comes_at_the_end_is_not_lost(any_house: RealAgentHarness) -> None:
    session = await any_house.session("full_auto")
    for sign in ("message_received", "turn_completed", "session_stats_updated"):
        run = await started(any_house, [[ModelSay(text="short")]], sign, session=session)
        late = f"late at {sign}"
        follow_up = await run.append(late)
        result = await follow_up.run.result()
        assert result.status is RunStatus.COMPLETED, result.failure
        assert result.text == f"You said: {late}"
        assert heard(any_house, late) == 1
        prompts = [
            each for each in any_house.server.log.asked[-1].items if isinstance(each, UserPrompt)
        ]
        assert prompts[-1].text == late


@pytest.mark.parametrize("where", [in_text, in_a_tool])
async def test_an_older_one_is_given_no_words_that_it_would_take_for_something_else(
    old_house: RealAgentHarness, where: Callable[[Path], ModelScript]
) -> None:
    (old_house.work / "secret.txt").write_text("hidden contents")

    async def one(text: str) -> None:
        gate = old_house.gate()
        run = await started(old_house, where(gate), SIGNS[where])
        follow_up = await run.append(text)
        gate.touch()
        assert not follow_up.accepted
        assert (await run.result()).status is RunStatus.COMPLETED
        failure = (await follow_up.run.result()).failure
        assert failure is not None
        assert "slash_commands" in failure.message

    async with trio.open_nursery() as nursery:
        for text in ("/clear", "/nosuch", "look at @secret.txt"):
            nursery.start_soon(one, text)
    assert "hidden contents" not in str([each.body for each in old_house.server.log.asked])


@pytest.mark.parametrize("where", [in_text, in_a_tool])
async def test_a_command_to_a_running_turn_is_done_and_the_run_is_over(
    any_house: RealAgentHarness, where: Callable[[Path], ModelScript]
) -> None:
    async def one(text: str) -> None:
        gate = any_house.gate()
        run = await started(any_house, where(gate), SIGNS[where], slash_commands=True)
        follow_up = await run.append(text)
        gate.touch()
        assert follow_up.accepted
        await ends(run, [follow_up])

    async with trio.open_nursery() as nursery:
        for text in ("/clear", "/cost", "/nosuch", "/compact"):
            nursery.start_soon(one, text)
