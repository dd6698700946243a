"""Turns on a mock: usage, follow-ups, and what their end decides."""

from __future__ import annotations

from sessionmgr.model import AnyEvent, MessageSent, RunStatus, Usage
from sessionmgr_adapters.amp.frames import EndOfInput
from tests.adapters.amp.mock_agent import (
    Talk,
    agent_of_frames,
    failure,
    manager_of,
    opening,
    play,
    said,
    success,
    text,
)


def states_of(events: list[AnyEvent]) -> list[str]:
    """Return the delivery states of the follow-ups, in order."""
    return [each.state for each in events if isinstance(each, MessageSent) and each.follow_up]


async def test_usage_is_reported_for_each_message() -> None:
    async def script(it: Talk) -> None:
        await opening(it)
        it.says(text("a"), text("b", "end_turn"))
        await it.heard()
        it.says(success())

    result, events = await play(script)
    assert [each.type for each in events].count("token_usage_updated") == 2
    assert result.usage == Usage(input=20, cached_input=6, output=4)


async def test_a_follow_up_that_amp_does_not_repeat_is_dropped_at_the_end() -> None:
    async def script(it: Talk) -> None:
        await opening(it)
        it.says(text("half"))
        await it.heard()
        it.says(failure("Network Error"))

    async with manager_of(script) as (manager, _):
        session = await manager.open_session("amp")
        run = await session.submit("hi")
        events: list[AnyEvent] = []
        async for event in run:
            events.append(event)
            if event.type == "message_received":
                assert (await run.append("more")).accepted
    assert states_of(events)[-1] == "dropped"


async def test_a_follow_up_after_the_answer_is_a_run_of_its_own() -> None:
    async def script(it: Talk) -> None:
        if len(threads) == 1:
            await agent_of_frames(it)
            return
        threads.append("first")
        await opening(it)
        it.says(text("well", "end_turn"))
        await it.expect(EndOfInput())
        await it.gate("draining")
        it.says(success("well"))

    threads: list[str] = []
    async with manager_of(script) as (manager, sdk):
        session = await manager.open_session("amp")
        run = await session.submit("hi")
        await sdk.reached("draining")
        follow_up = await run.append("say more")
        assert not follow_up.accepted
        sdk.open_gate("draining")
        assert (await run.result()).text == "well"
        result = await follow_up.run.result()
    assert (result.status, result.text) == (RunStatus.COMPLETED, "more")


async def test_a_message_that_the_agent_reads_after_its_answer_belongs_to_the_run() -> None:
    async def script(it: Talk) -> None:
        await opening(it)
        it.says(text("half"))
        await it.heard()
        it.says(text("well", "end_turn"))  # the message was on its way
        await it.expect(EndOfInput())
        it.says(said("more"), text("and more", "end_turn"), success("and more"))

    async with manager_of(script) as (manager, _):
        session = await manager.open_session("amp")
        run = await session.submit("hi")
        events: list[AnyEvent] = []
        async for event in run:
            events.append(event)
            if event.type == "message_received" and len(states_of(events)) == 0:
                assert (await run.append("more")).accepted
        result = await run.result()
    assert (result.status, result.text) == (RunStatus.COMPLETED, "and more")
    assert states_of(events) == ["queued", "sent"]
