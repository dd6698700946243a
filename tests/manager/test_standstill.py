"""The time for which our own process stood still does not count as the agent's silence."""

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from sessionmgr.manager import Clocks, RunHandle
from sessionmgr.model import RunStatus, StallSuspected
from sessionmgr.testing.scripted_provider import Hang, Say, Wait
from tests.manager.harness import events, open_harness, run_scripted

SILENCE = 40.0
HOUR = 3600.0


async def pass_time(clock: MockClock, seconds: float) -> None:
    """Let time pass as in a running loop: the timer task is never late for it."""
    for _ in range(round(seconds * 2)):
        clock.jump(0.5)
        await wait_all_tasks_blocked()


def is_on(run: RunHandle) -> bool:
    return run.status is RunStatus.RUNNING


async def test_an_agent_is_not_ended_for_the_hour_in_which_we_were_stopped(
    mock_clock: MockClock,
) -> None:
    async with open_harness(clocks=Clocks(model=SILENCE, tool_warning=0)) as house:
        session = await house.manager.open_session("actor")
        run = await session.submit(run_scripted(Say(text="hm"), Hang()))
        await wait_all_tasks_blocked()
        await pass_time(mock_clock, SILENCE - 5)
        mock_clock.jump(HOUR)  # SIGSTOP, and SIGCONT
        await wait_all_tasks_blocked()
        assert is_on(run)
        await pass_time(mock_clock, 3)
        assert is_on(run)
        before = trio.current_time()
        while is_on(run):
            await pass_time(mock_clock, 0.5)
            assert trio.current_time() < before + SILENCE
        assert run.status is RunStatus.TIMED_OUT
        warning, act = [each for each in await events(run) if isinstance(each, StallSuspected)]
        assert warning.silent_for < 25
        assert SILENCE <= act.silent_for < SILENCE + 5


async def test_what_the_agent_said_meanwhile_is_read_before_anything_is_enforced(
    mock_clock: MockClock,
) -> None:
    async with open_harness(clocks=Clocks(model=SILENCE)) as house:
        session = await house.manager.open_session("actor")
        run = await session.submit(
            run_scripted(Say(text="a"), Wait(seconds=HOUR / 2), Say(text="b"))
        )
        await wait_all_tasks_blocked()
        mock_clock.jump(HOUR)
        await wait_all_tasks_blocked()
        assert (await run.result()).status is RunStatus.COMPLETED
        assert not [each for each in await events(run) if isinstance(each, StallSuspected)]


async def test_a_run_that_is_to_end_has_its_grace_also_if_we_stand_still_in_it(
    mock_clock: MockClock,
) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        run = await session.submit(run_scripted(Say(text="a"), Hang()))
        await wait_all_tasks_blocked()
        run.cancel()
        mock_clock.jump(HOUR)
        await wait_all_tasks_blocked()
        assert (await run.result()).status is RunStatus.CANCELLED
        assert not [each for each in await events(run) if isinstance(each, StallSuspected)]
