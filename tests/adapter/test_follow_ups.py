"""States of the messages to a running turn, for every order of the steps."""

from collections.abc import Callable

import pytest
import trio
from hypothesis import given, strategies as st
from trio.testing import MockClock

from sessionmgr.adapter import ProviderAdapter, RunContext
from sessionmgr.adapter.kit.follow_ups import TRANSITIONS, FollowUps, FollowUpState, FollowUpStep
from sessionmgr.manager import open_manager
from sessionmgr.model import MessageSent


async def told_of(
    play: Callable[[FollowUps, trio.Nursery], None], *, at_once: bool = False
) -> tuple[list[bool], list[str]]:
    """Return which offers were accepted, and which messages were reported as dropped.

    With `at_once` the conversation ends before the offers return.
    """
    taken: list[bool] = []

    class Sender(ProviderAdapter):
        name = "sender"

        async def run(self, run: RunContext) -> None:
            follow_ups = FollowUps(run)

            async def offer(name: str) -> None:
                taken.append(
                    await follow_ups.offer(name, f"text of {name}", trio.lowlevel.checkpoint)
                )

            async with trio.open_nursery() as nursery:
                nursery.start_soon(offer, "a")
                await trio.testing.wait_all_tasks_blocked()
                play(follow_ups, nursery)
                if not at_once:
                    await trio.testing.wait_all_tasks_blocked()
                follow_ups.end()
            await offer("late")
            assert follow_ups.offered == []
            await run.finish()

    async with open_manager(adapters={"sender": Sender}) as manager:
        session = await manager.open_session("sender")
        run = await session.submit("hi")
        events = [event async for event in run]
    dropped = [
        each.content for each in events if isinstance(each, MessageSent) and each.state == "dropped"
    ]
    return taken, dropped


@pytest.mark.parametrize(
    ("steps", "is_taken", "is_dropped"),
    [
        ((), False, False),
        ((FollowUpStep.REFUSE,), False, False),
        ((FollowUpStep.ACCEPT,), True, True),
        ((FollowUpStep.HEAR,), True, False),
        ((FollowUpStep.ACCEPT, FollowUpStep.HEAR), True, False),
        ((FollowUpStep.HEAR, FollowUpStep.REFUSE), True, False),
        ((FollowUpStep.ACCEPT, FollowUpStep.REFUSE), True, True),
        ((FollowUpStep.REFUSE, FollowUpStep.HEAR), False, False),
    ],
)
async def test_a_message_is_taken_or_not_and_dropped_if_it_was_taken_and_not_heard(
    autojump_clock: MockClock, steps: tuple[FollowUpStep, ...], is_taken: bool, is_dropped: bool
) -> None:
    def play(follow_ups: FollowUps, nursery: trio.Nursery) -> None:
        happens = {
            FollowUpStep.ACCEPT: follow_ups.accept,
            FollowUpStep.HEAR: follow_ups.mark_heard,
            FollowUpStep.REFUSE: follow_ups.refuse,
        }
        for step in steps:
            happens[step]("a")
            happens[step]("another's")

    taken, dropped = await told_of(play)
    assert taken == [is_taken, False]
    assert dropped == (["text of a"] if is_dropped else [])


@pytest.mark.parametrize("heard", [False, True])
async def test_what_is_accepted_as_the_conversation_ends_is_refused_unless_it_was_heard(
    autojump_clock: MockClock, *, heard: bool
) -> None:
    def play(follow_ups: FollowUps, nursery: trio.Nursery) -> None:
        follow_ups.accept("a")
        if heard:
            follow_ups.mark_heard("a")

    assert await told_of(play, at_once=True) == ([heard, False], [])


@given(steps=st.lists(st.sampled_from(FollowUpStep)))
def test_after_the_end_nothing_is_open_whatever_came_before(steps: list[FollowUpStep]) -> None:
    state = FollowUpState.OFFERED
    for step in [*steps, FollowUpStep.END]:
        state = TRANSITIONS[state].get(step, state)
    assert TRANSITIONS[state] == {}
