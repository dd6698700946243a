"""Fairness: how long ready tasks wait for actors that never run out of messages."""

from __future__ import annotations

import pytest
import trio
from hypothesis import given, settings, strategies as st

from sessionmgr.otp import Actor, Cast, Continue, Ref, Supervisor, child
from sessionmgr.otp.actor import BUDGET
from tests.otp.puppets import in_virtual_time


class Tick(Cast):
    pass


class Busy(Actor):
    """Has always one more message: for itself, in its mailbox or as a continuation."""

    def __init__(self, handled: list[int], goes_on: bool, pauses: bool) -> None:
        self.handled = handled
        self.goes_on = goes_on
        self.pauses = pauses

    async def handle_cast(self, message: Cast) -> Continue | None:
        await self.work()
        if self.goes_on:
            return Continue()
        self.ref.post("again")
        return None

    async def handle_info(self, message: object) -> None:
        await self.work()
        self.ref.post("again")

    async def handle_continue(self, arg: object) -> Continue:
        await self.work()
        return Continue()

    async def work(self) -> None:
        self.handled[0] += 1
        if self.pauses:
            await trio.lowlevel.checkpoint()


@settings(max_examples=30)
@given(
    kinds=st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=6),
    schedule=st.random_module(),
)
def test_p26_nobody_waits_for_more_than_a_budget_of_messages_from_each_busy_actor(
    kinds: list[tuple[bool, bool]], schedule: object
) -> None:
    handled = [0]
    waits: list[int] = []

    async def main() -> None:
        specs = [
            child(Busy, handled, goes_on, pauses, id=str(number), shutdown="brutal_kill")
            for number, (goes_on, pauses) in enumerate(kinds)
        ]
        async with Supervisor(*specs) as sup:
            for number in range(len(kinds)):
                ref: Ref[Busy] = sup.ref(str(number), Busy)
                ref.cast(Tick())
            for _ in range(50):
                before = handled[0]
                await trio.lowlevel.checkpoint()
                waits.append(handled[0] - before)

    in_virtual_time(main)
    # A task that becomes ready within a round of the scheduler runs in the next, at a place in it
    # that chance decides: so each busy actor may have had its turn twice.
    assert max(waits) <= 2 * len(kinds) * BUDGET
    # And they were busy.
    assert sum(waits) >= 20 * len(kinds)


@pytest.mark.parametrize("goes_on", [False, True], ids=["messages", "continuations"])
async def test_p26_a_turn_is_one_budget_long(goes_on: bool, autojump_clock: object) -> None:
    class Turns(trio.abc.Instrument):
        def __init__(self) -> None:
            self.lengths: list[int] = []
            # It begins its work in the middle of a step.
            self.before = 0

        def before_task_step(self, task: trio.lowlevel.Task) -> None:
            self.before = handled[0]

        def after_task_step(self, task: trio.lowlevel.Task) -> None:
            self.lengths.append(handled[0] - self.before)

    handled = [0]
    turns = Turns()
    spec = child(Busy, handled, goes_on, False, id="busy", shutdown="brutal_kill")
    async with Supervisor(spec) as sup:
        await trio.lowlevel.checkpoint()
        trio.lowlevel.add_instrument(turns)
        sup.ref("busy", Busy).cast(Tick())
        for _ in range(20):
            await trio.lowlevel.checkpoint()
        trio.lowlevel.remove_instrument(turns)
    assert max(turns.lengths) == BUDGET
    assert turns.lengths.count(BUDGET) >= 10


async def test_p26_an_actor_with_a_full_mailbox_can_be_stopped(autojump_clock: object) -> None:
    handled = [0]
    async with Supervisor(child(Busy, handled, True, False, id="busy")) as sup:
        sup.ref("busy", Busy).cast(Tick())
        for _ in range(10):
            await trio.lowlevel.checkpoint()
        await sup.terminate_child("busy")
        done = handled[0]
        assert done >= BUDGET
        await trio.sleep(1)
        assert handled[0] == done
