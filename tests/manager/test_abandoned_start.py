"""Runs that are given up on the way, at each step of the scheduler, in many of its orders."""

from functools import partial

import pytest
import trio

from sessionmgr.model import TERMINAL
from sessionmgr.testing.at_step import AtStep
from sessionmgr.testing.schedule import run_scheduled
from sessionmgr.testing.scripted import Say, Wait
from tests.manager.house import House, open_house, play

SEEDS = 3


async def give_up_at(step: int, house: House, *, busy: bool) -> bool:
    """Start a run and give that up at a step; return whether it lasted so long."""
    session = await house.manager.open_session("actor")
    before = await session.submit(play(Wait(seconds=1), Say(text="first"))) if busy else None
    scope = trio.CancelScope()
    instrument = AtStep(step, scope.cancel)
    with scope:
        trio.lowlevel.add_instrument(instrument)
        async with session.start(play(Say(text="given up"))) as run:
            assert (await run.result()).text == "given up"
    trio.lowlevel.remove_instrument(instrument)
    if before is not None:
        assert (await before.result()).text == "first"
    async with session.start(play(Say(text="next"))) as run:
        assert (await run.result()).text == "next"
    return instrument.is_done


async def leave_nothing_behind(step: int, *, busy: bool) -> bool:
    async with open_house() as house:
        lasted = await give_up_at(step, house, busy=busy)
        began = trio.current_time()
    assert trio.current_time() - began < 1  # the manager had nothing to wait for
    assert {run.status for run in (await house.store.runs()).rows} <= TERMINAL
    return lasted


@pytest.mark.parametrize("busy", [False, True])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_nothing_is_left_behind(seed: int, busy: bool) -> None:
    step = 0
    while run_scheduled(partial(leave_nothing_behind, step, busy=busy), seed):
        step += 1
    assert step > 5
