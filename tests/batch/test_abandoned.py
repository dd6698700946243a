"""A batch that is cancelled at each step of the scheduler."""

from functools import partial

import trio

from sessionmgr import run_batch
from sessionmgr.testing.scripted_provider import Say, Wait
from sessionmgr.testing.seeded_schedule import run_scheduled
from sessionmgr.testing.step_trigger import StepTrigger
from tests.batch.open_batch import collect, job, open_batch_setup


async def give_up_at(step: int) -> bool:
    """Cancel a batch at a step; return whether it lasted that long."""
    async with open_batch_setup() as setup:
        jobs = [job(f"j{n}", Wait(seconds=0.1), Say(text="hi")) for n in range(3)]
        began = trio.current_time()
        scope = trio.CancelScope()
        instrument = StepTrigger(step, scope.cancel)
        batch = run_batch(setup.manager, jobs, concurrency=2)
        with scope:
            trio.lowlevel.add_instrument(instrument)
            await collect(batch)
        trio.lowlevel.remove_instrument(instrument)
        assert trio.current_time() - began < 2
    return instrument.is_done


def test_it_takes_no_time() -> None:
    step = 0
    while run_scheduled(partial(give_up_at, step), seed=0):
        step += 1
    assert step > 50
