"""Calls of a manager that are cancelled at each step of the scheduler."""

from collections.abc import Awaitable, Callable
from functools import partial

import pytest
import trio

from sessionmgr.adapter import Allow, ApprovalRequest, Decision
from sessionmgr.manager import SessionHandle
from sessionmgr.model import TERMINAL
from sessionmgr.testing.scripted_provider import Ask, Hear, Say, TurnEnd, Wait
from sessionmgr.testing.seeded_schedule import run_scheduled
from sessionmgr.testing.step_trigger import StepTrigger
from tests.manager.harness import ManagerHarness, open_harness, run_scripted

SCRIPT = run_scripted(Wait(seconds=1), Say(text="said"))


async def start(house: ManagerHarness, session: SessionHandle) -> None:
    async with session.start(run_scripted(Say(text="said"))) as run:
        await run.result()


async def start_behind_another(house: ManagerHarness, session: SessionHandle) -> None:
    await session.submit(SCRIPT)
    await start(house, session)


async def tell(house: ManagerHarness, session: SessionHandle) -> None:
    async with session.start(run_scripted(Wait(seconds=1), Hear(), Say(text="said"))) as run:
        await run.append("heard")
        follow_up = await run.append("heard, or a run of its own")
        await follow_up.run.result()


async def pause_and_go_on(house: ManagerHarness, session: SessionHandle) -> None:
    run = await session.submit(run_scripted(Say(text="said"), TurnEnd(), Wait(seconds=2)))
    await trio.sleep(0.5)
    await house.manager.resume(await run.pause(), "go on")


async def ask(house: ManagerHarness, session: SessionHandle) -> None:
    async def approve(request: ApprovalRequest) -> Decision:
        await trio.sleep(0.1)
        return Allow()

    asking = await house.manager.open_session("actor", approve=approve)
    async with asking.start(run_scripted(Ask(tool="rm"), Say(text="said"))) as run:
        async for _ in run:
            pass


async def cancel(house: ManagerHarness, session: SessionHandle) -> None:
    runs = [await session.submit(SCRIPT) for _ in range(2)]
    await trio.sleep(0.1)
    for run in reversed(runs):
        await house.manager.cancel(run.id)
        await run.result()


async def close(house: ManagerHarness, session: SessionHandle) -> None:
    run = await session.submit(SCRIPT)
    await session.close()
    await run.result()


Scene = Callable[[ManagerHarness, SessionHandle], Awaitable[None]]


async def give_up_at(step: int, scene: Scene) -> bool:
    """Cancel a scene at a step; return whether it lasted so long."""
    async with open_harness() as house:
        scope = trio.CancelScope()
        instrument = StepTrigger(step, scope.cancel)
        session = await house.manager.open_session("actor")
        trio.lowlevel.add_instrument(instrument)
        with scope:
            await scene(house, session)
        trio.lowlevel.remove_instrument(instrument)
        other = await house.manager.open_session("actor")
        assert (await (await other.submit(run_scripted(Say(text="next")))).result()).text == "next"
        began = trio.current_time()
    assert trio.current_time() - began < 3  # the manager had nothing to wait for
    assert {run.status for run in (await house.store.runs()).rows} <= TERMINAL
    return instrument.is_done


@pytest.mark.parametrize("scene", [tell, pause_and_go_on, ask, cancel, close])
def test_nothing_is_left_behind(scene: Scene) -> None:
    _give_up_everywhere(scene, seed=0)


@pytest.mark.parametrize("scene", [start, start_behind_another])
@pytest.mark.parametrize("seed", range(3))
def test_a_start_leaves_nothing_behind(scene: Scene, seed: int) -> None:
    _give_up_everywhere(scene, seed)


def _give_up_everywhere(scene: Scene, seed: int) -> None:
    step = 0
    while run_scheduled(partial(give_up_at, step, scene), seed):
        step += 1
    assert step > 5
