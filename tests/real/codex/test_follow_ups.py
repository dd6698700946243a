"""Messages to a running turn of a real Codex: the model reads each once, and answers."""

from __future__ import annotations

from pathlib import Path

import trio

from sessionmgr.manager import FollowUp, RunHandle
from sessionmgr.model import MessageReceived, MessageSent, RunStarted, RunStatus
from sessionmgr.testing.model_server import (
    ModelCall,
    ModelRequest,
    ModelSay,
    ModelScript,
    UserPrompt,
)
from tests.real.harness import RealAgentHarness, until, until_event

SLOW = "one two three four five six seven eight nine ten "


def in_text(gate: Path) -> ModelScript:
    """Return a script that stays in the middle of a text until a file exists."""
    return [[ModelSay(text=SLOW, deltas=10, until=str(gate))]]


async def started(
    house: RealAgentHarness, script: ModelScript, sign: str, **options: str
) -> RunHandle:
    session = await house.session("full_auto")
    run = await house.submit(session, script, options=house.options(**options))
    await until_event(run, sign)
    return run


async def asked(house: RealAgentHarness, run: RunHandle) -> list[ModelRequest]:
    """Return the requests to the model in the thread of a run."""
    return house.asked((await run.result()).provider_session_id)


async def heard(house: RealAgentHarness, run: RunHandle, text: str) -> int:
    """Return how often a message is in the last request."""
    items = (await asked(house, run))[-1].items
    return sum(text in each.text for each in items if isinstance(each, UserPrompt))


async def ends(run: RunHandle, follow_ups: list[FollowUp]) -> None:
    result = await run.result()
    assert result.status is RunStatus.COMPLETED, result.failure
    for each in follow_ups:
        assert (await each.run.result()).status is RunStatus.COMPLETED
    sent = [each async for each in run if isinstance(each, MessageSent) and each.follow_up]
    assert not [each for each in sent if each.state == "unknown"]


async def in_text_it_is_answered_after_that(house: RealAgentHarness) -> None:
    gate = house.gate()
    run = await started(house, in_text(gate), "message_streamed")
    follow_up = await run.append("and then this")
    gate.touch()
    assert follow_up.accepted
    await ends(run, [follow_up])
    assert (await follow_up.run.result()).text == "You said: and then this"
    assert await heard(house, follow_up.run, "and then this") == 1
    told = [each.content async for each in run if isinstance(each, MessageReceived)]
    assert told.count(SLOW) == 1  # nothing was lost or repeated


async def in_a_tool_it_is_heard_within_the_turn(house: RealAgentHarness) -> None:
    gate = house.gate()
    waits = f"until [ -e {gate} ]; do sleep 0.05; done"
    script: ModelScript = [
        [ModelCall(tool="exec_command", input={"cmd": waits, "yield_time_ms": 30_000})],
        [ModelSay(text="I heard")],
    ]
    run = await started(house, script, "tool_call_started")
    follow_up = await run.append("use blue")
    gate.touch()
    assert follow_up.accepted
    await ends(run, [follow_up])
    assert follow_up.run.id == run.id
    assert await heard(house, run, "use blue") == 1


async def several_at_once_are_each_heard_once(house: RealAgentHarness) -> None:
    gate = house.gate()
    run = await started(house, in_text(gate), "message_streamed")
    follow_ups: list[FollowUp] = []

    async def one(text: str) -> None:
        follow_ups.append(await run.append(text))

    texts = ("first more", "second more", "third more")
    async with trio.open_nursery() as nursery:
        for text in texts:
            nursery.start_soon(one, text)
    gate.touch()
    await ends(run, follow_ups)
    for text in texts:
        assert await heard(house, run, text) == 1, text


async def one_that_is_for_now_ends_what_is_said(house: RealAgentHarness) -> None:
    """The model starts again, with the same text in this script; discarded text is not stored."""
    gate = house.gate()
    run = await started(house, in_text(gate), "message_streamed", follow_up="now")
    begun = await until_event(run, "run_started")
    assert isinstance(begun, RunStarted)
    follow_up = await run.append("stop that")
    await until(lambda: len(house.asked(begun.provider_session_id)) == 2)
    gate.touch()
    assert follow_up.accepted
    await ends(run, [follow_up])
    assert len(await asked(house, run)) == 2
    assert await heard(house, run, "stop that") == 1
    assert [each.content async for each in run if isinstance(each, MessageReceived)] == [SLOW]
    assert (await run.result()).text == SLOW


async def one_that_comes_at_the_end_is_not_lost(house: RealAgentHarness) -> None:
    for sign in ("message_received", "turn_completed"):
        run = await started(house, [[ModelSay(text="short")]], sign)
        follow_up = await run.append("late one")
        result = await follow_up.run.result()
        assert result.status is RunStatus.COMPLETED, result.failure
        assert result.text == "You said: late one"
        assert await heard(house, follow_up.run, "late one") == 1


async def one_to_a_process_of_its_own_is_the_next_run(house: RealAgentHarness) -> None:
    session = await house.session("full_auto")
    options = house.options(exec=True)
    gate = house.gate()
    run = await house.submit(session, in_text(gate), options=options)
    await until_event(run, "run_started")
    follow_up = await run.append("then this")
    gate.touch()
    assert not follow_up.accepted
    assert (await follow_up.run.result()).text == "You said: then this"


async def test_each_message_is_heard_once_and_answered(any_house: RealAgentHarness) -> None:
    async with trio.open_nursery() as nursery:
        for case in (
            in_text_it_is_answered_after_that,
            in_a_tool_it_is_heard_within_the_turn,
            several_at_once_are_each_heard_once,
            one_that_is_for_now_ends_what_is_said,
            one_that_comes_at_the_end_is_not_lost,
            one_to_a_process_of_its_own_is_the_next_run,
        ):
            nursery.start_soon(case, any_house)
