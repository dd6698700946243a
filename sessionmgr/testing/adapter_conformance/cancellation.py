"""The behaviours of runs that are cancelled: each ends in time, and keeps all its output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.manager import Clocks
from sessionmgr.model import EMULATED, EndReason, MessageSent, RunStatus, TurnCompleted
from sessionmgr.testing.adapter_conformance.behaviour import AdapterBehaviourGroup
from sessionmgr.testing.step_trigger import StepTrigger

if TYPE_CHECKING:
    from sessionmgr.manager import RunHandle
    from sessionmgr.testing.adapter_conformance.case import Play
    from sessionmgr.testing.adapter_conformance.harness import ConformanceHarness

ENDING: Final = AdapterBehaviourGroup()
MOST_EVENTS: Final = 20


@ENDING.register("hangs")
async def a_cancelled_run_ends_in_time_and_keeps_its_text(
    stage: ConformanceHarness,
) -> None:
    assert stage.case.hangs is not None
    run = await stage.submit(stage.case.hangs)
    await stage.wait_for_text(run, stage.case.hangs.text)
    assert run.cancel("enough")
    await _is_cancelled(stage, run, stage.case.hangs)


@ENDING.register("deaf")
async def an_unresponsive_run_is_ended_in_time(stage: ConformanceHarness) -> None:
    assert stage.case.deaf is not None
    run = await stage.submit(stage.case.deaf)
    await stage.wait_for_text(run, stage.case.deaf.text)
    assert run.cancel("enough")
    await _is_cancelled(stage, run, stage.case.deaf)


@ENDING.register("deaf")
async def after_an_unresponsive_run_the_next_succeeds(stage: ConformanceHarness) -> None:
    assert stage.case.deaf is not None
    session = await stage.session()
    run = await stage.submit(stage.case.deaf, session)
    await stage.wait_for_text(run, stage.case.deaf.text)
    run.cancel()
    await run.result()
    played = await stage.run_to_end(stage.case.answers, session)
    assert played.result.status == RunStatus.COMPLETED, played.result.failure


@ENDING.register("hangs")
async def after_a_cancel_the_next_run_succeeds(stage: ConformanceHarness) -> None:
    assert stage.case.hangs is not None
    session = await stage.session()
    run = await stage.submit(stage.case.hangs, session)
    await stage.wait_for_text(run, stage.case.hangs.text)
    run.cancel()
    await run.result()
    played = await stage.run_to_end(stage.case.answers, session)
    assert played.result.status == RunStatus.COMPLETED, played.result.failure


@ENDING.register()
async def a_run_cancelled_at_once_is_cancelled(stage: ConformanceHarness) -> None:
    run = await stage.submit(stage.case.answers)
    if run.cancel():
        await _is_cancelled(stage, run, None)


@ENDING.register()
async def a_cancel_may_come_at_any_event(stage: ConformanceHarness) -> None:
    played = await stage.run_to_end(stage.case.answers)
    for place in stage.case.moments_of(len(played.events), MOST_EVENTS):
        run = await stage.submit(stage.case.answers)
        seen = 0
        claimed = False
        async for _ in run:
            if seen == place:
                claimed = run.cancel()
            seen += 1
        result = (await stage.collect(run)).result
        wanted = RunStatus.CANCELLED if claimed else RunStatus.COMPLETED
        assert result.status == wanted, f"cancelled at event {place}: {result}"


@ENDING.register()
async def after_a_cancel_at_any_step_the_next_run_succeeds(stage: ConformanceHarness) -> None:
    session = await stage.session()
    for step in stage.case.steps():
        run = await stage.submit(stage.case.answers, session)
        cancel = StepTrigger(step, run.cancel)
        trio.lowlevel.add_instrument(cancel)
        await stage.collect(run)
        trio.lowlevel.remove_instrument(cancel)
        result = (await stage.run_to_end(stage.case.answers, session)).result
        assert result.status == RunStatus.COMPLETED, f"cancelled at step {step}: {result.failure}"
        assert stage.case.answers.text in {None, result.text}, f"cancelled at step {step}"
        if not cancel.is_done:
            return


@ENDING.register("hangs", capabilities=("interrupt",))
async def a_cancel_at_any_step_takes_effect(stage: ConformanceHarness) -> None:
    assert stage.case.hangs is not None
    if not stage.case.virtual:
        return  # a busy machine may take as long as the grace
    for step in stage.case.steps():
        began = trio.current_time()
        run = await stage.submit(stage.case.hangs)
        cancel = StepTrigger(step, run.cancel)
        trio.lowlevel.add_instrument(cancel)
        await stage.wait_for_text_or_end(run, stage.case.hangs.text)
        trio.lowlevel.remove_instrument(cancel)
        is_last = run.cancel("enough")
        assert (await stage.collect(run)).result.status == RunStatus.CANCELLED
        took = trio.current_time() - began
        assert took < stage.case.grace, f"cancelled at step {step}, the run took {took:g} s to end"
        if is_last:
            return


@ENDING.register("hangs", capabilities=("steer",))
async def a_message_that_waits_in_the_adapter_is_dropped_by_a_cancel(
    stage: ConformanceHarness,
) -> None:
    assert stage.case.hangs is not None
    if stage.case.adapter.capabilities.steer != EMULATED:
        return  # the agent itself may have read the message
    run = await stage.submit(stage.case.hangs)
    await stage.wait_for_text(run, stage.case.hangs.text)
    follow_up = await run.append(stage.case.answers.prompt)
    run.cancel("enough")
    events = (await stage.collect(run)).events
    if follow_up.accepted and not any(isinstance(each, TurnCompleted) for each in events):
        sent = [each for each in events if isinstance(each, MessageSent) and each.follow_up]
        states = [each.state for each in sent]
        assert states[-1] == "dropped", f"no later turn read the message: {states}"


@ENDING.register("hangs")
async def a_deadline_ends_a_run(stage: ConformanceHarness) -> None:
    assert stage.case.hangs is not None
    run = await stage.submit(stage.case.hangs, clocks=Clocks(deadline=1.0))
    played = await stage.collect(run)
    assert (played.result.status, played.result.reason) == (RunStatus.TIMED_OUT, EndReason.DEADLINE)


@ENDING.register("hangs", capabilities=("resume",))
async def a_run_can_be_paused_and_resumed(stage: ConformanceHarness) -> None:
    assert stage.case.hangs is not None
    run = await stage.submit(stage.case.hangs)
    await stage.wait_for_text(run, stage.case.hangs.text)
    snapshot = await run.pause(node="half way")
    assert (await run.result()).status == RunStatus.PAUSED
    resumed = await stage.manager.submit_resume(snapshot, stage.case.answers.prompt)
    result = (await stage.collect(resumed)).result
    assert result.status == RunStatus.COMPLETED, result.failure
    assert result.resumed_from == run.id
    assert result.provider_session_id == snapshot.provider_session_id


@ENDING.register("hangs")
async def runs_are_cancelled_when_the_manager_closes(stage: ConformanceHarness) -> None:
    assert stage.case.hangs is not None
    run = await stage.submit(stage.case.hangs)
    await stage.wait_for_text(run, stage.case.hangs.text)

    def look() -> None:
        assert run.status == RunStatus.CANCELLED, f"the manager closed, but it is {run.status}"

    stage.afterwards.append(look)


async def _is_cancelled(stage: ConformanceHarness, run: RunHandle, play: Play | None) -> None:
    """Check that a run ends as cancelled, in time and with its text.

    Raises:
        AssertionError: It does not.
    """
    result = await stage.result_in_time(run)
    assert (result.status, result.reason) == (RunStatus.CANCELLED, EndReason.USER), result.failure
    if play is not None:
        assert result.detail == "enough"
        assert play.text in {None, result.text}, f"its text is {result.text!r}"
    await stage.collect(run)
