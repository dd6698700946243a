"""The phase table of a run: each phase with each step, its end, and the record beside it."""

import ast
import math
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
from hypothesis import given, strategies as st
from trio.testing import MockClock

import sessionmgr.manager
from sessionmgr.adapter import RunSpec, StopReason
from sessionmgr.manager import Clocks, shutdown
from sessionmgr.manager.commands import RecorderCommand
from sessionmgr.manager.handles import RunHandle
from sessionmgr.manager.run_phase import TRANSITIONS, RunPhase, RunStep
from sessionmgr.manager.run_plan import RunPlan, RunRequest
from sessionmgr.manager.run_state import RunState
from sessionmgr.manager.session_state import SessionState
from sessionmgr.manager.supervised_run import SupervisedRun
from sessionmgr.manager.timeouts import TimeoutScheduler
from sessionmgr.manager.transitions import RecordTransitions
from sessionmgr.model import (
    TERMINAL_TYPES,
    EndCause,
    Fidelity,
    IllegalTransition,
    Negotiation,
    Permission,
    PermissionMode,
    Session,
)
from sessionmgr.model.outcome import OUTCOMES
from sessionmgr.model.state_diagram import mermaid_diagram
from sessionmgr.otp import TaskHandle
from sessionmgr.testing.scripted_provider import Crash, Deaf, Finish, Hang, Say, Step as Line, Tool
from tests.manager.harness import open_harness, run_scripted

README = Path(sessionmgr.manager.__file__).with_name("README.md")

# Written a second time: a table that is compared with itself is never wrong.
EXPECTED = {
    ("waiting", "dispatch"): "dispatched",
    ("waiting", "stop"): "over",
    ("dispatched", "start"): "running",
    ("dispatched", "stop"): "over",
    ("dispatched", "task_over"): "over",
    ("running", "stop"): "stopping",
    ("running", "task_over"): "over",
    ("stopping", "cut"): "cut",
    ("stopping", "grace_over"): "late",
    ("stopping", "task_over"): "over",
    ("cut", "grace_over"): "over",
    ("cut", "task_over"): "over",
    ("late", "grace_over"): "over",
    ("late", "task_over"): "over",
}
WAYS: dict[RunPhase, tuple[RunStep, ...]] = {
    RunPhase.WAITING: (),
    RunPhase.DISPATCHED: (RunStep.DISPATCH,),
    RunPhase.RUNNING: (RunStep.DISPATCH, RunStep.START),
    RunPhase.STOPPING: (RunStep.DISPATCH, RunStep.START, RunStep.STOP),
    RunPhase.CUT: (RunStep.DISPATCH, RunStep.START, RunStep.STOP, RunStep.CUT),
    RunPhase.LATE: (RunStep.DISPATCH, RunStep.START, RunStep.STOP, RunStep.GRACE_OVER),
    RunPhase.OVER: (RunStep.DISPATCH, RunStep.START, RunStep.TASK_OVER),
}
REFUSED = "raises"
IGNORED = "changes nothing"
# The result of a step that the table does not have: an error, or ignored as too late.
OTHERWISE = {
    RunStep.DISPATCH: REFUSED,
    RunStep.START: REFUSED,
    RunStep.STOP: IGNORED,
    RunStep.CUT: IGNORED,
    RunStep.GRACE_OVER: IGNORED,
    RunStep.TASK_OVER: REFUSED,
}


def made() -> RunState:
    permission = Permission(
        asked=PermissionMode.DEFAULT, effective="default", fidelity=Fidelity.EXACT
    )
    return SupervisedRun(
        RunPlan(
            spec=RunSpec(prompt="hi", cwd="/", env={}, permission=permission),
            negotiation=Negotiation(),
            clocks=Clocks(close=5.0),
            wish=RunRequest(prompt="hi"),
            secrets=(),
            asked={},
        ),
        live=SessionState(Session(id="ses_1", provider="actor", cwd="/"), stored=False, last_seq=0),
        timeouts=TimeoutScheduler(),
        run_id="run_1",
        message_id="msg_1",
    )


def take(run: RunState, step: RunStep) -> bool:
    """Take a step as the manager does; return its result."""
    match step:
        case RunStep.DISPATCH:
            run.dispatch()
        case RunStep.START:
            run.task_launched(TaskHandle(trio.sleep_forever, (), None))
        case RunStep.STOP:
            return run.end(StopReason(cause=EndCause.CALLER))
        case RunStep.CUT:
            return run.cut()
        case RunStep.GRACE_OVER:
            return run.grace_expired()
        case RunStep.TASK_OVER:
            run.task_ended(None)
    return True


async def in_phase(phase: RunPhase) -> RunState:
    await trio.lowlevel.checkpoint()
    run = made()
    for step in WAYS[phase]:
        take(run, step)
    assert run.phase is phase
    run.task = None  # no nursery has started it, so it cannot be cancelled
    return run


def test_the_table_is_as_it_is_written_out() -> None:
    table = {
        (str(phase), str(step)): str(then)
        for phase, steps in TRANSITIONS.items()
        for step, then in steps.items()
    }
    assert table == EXPECTED
    assert set(TRANSITIONS) == set(RunPhase)


@pytest.mark.parametrize("phase", RunPhase)
@pytest.mark.parametrize("step", RunStep)
async def test_each_step_in_each_phase(
    autojump_clock: MockClock, phase: RunPhase, step: RunStep
) -> None:
    run = await in_phase(phase)
    then = EXPECTED.get((phase, step))
    if then is not None:
        assert take(run, step)
        assert run.phase == then
    elif OTHERWISE[step] is IGNORED:
        assert not take(run, step)
        assert run.phase is phase
    elif phase is RunPhase.OVER and step is RunStep.TASK_OVER:  # of a task that was abandoned
        take(run, step)
        assert run.phase is RunPhase.OVER
    else:
        with pytest.raises(IllegalTransition, match=f"may not follow in a run that is {phase}"):
            take(run, step)
        assert run.phase is phase


@given(steps=st.lists(st.sampled_from(RunStep), max_size=30))
def test_a_run_is_over_once_and_for_good_and_its_first_reason_stands(steps: list[RunStep]) -> None:
    async def main() -> None:
        await trio.lowlevel.checkpoint()
        run, times_over, reason, has_left = made(), 0, None, False
        for step in steps:
            before = run.phase
            try:
                take(run, step)
            except IllegalTransition:
                assert run.phase is before
            else:
                has_left |= step is RunStep.TASK_OVER
            # Without a task it is gone with its end; else when the task has ended.
            has_left |= run.phase is RunPhase.OVER and run.task is None
            times_over += run.phase is RunPhase.OVER and before is not RunPhase.OVER
            assert not (before is RunPhase.OVER and run.phase is not RunPhase.OVER)
            assert reason is None or run.stop is reason
            reason = run.stop
        assert times_over == (run.phase is RunPhase.OVER)
        assert run.gone.is_set() == has_left

    trio.run(main, clock=MockClock(autojump_threshold=0))


PLAYS: dict[str, tuple[Line, ...]] = {
    "well": (Say(text="a"),),
    "by itself": (Say(text="a"), Finish()),
    "crashed": (Say(text="a"), Crash()),
    "cancelled": (Say(text="a"), Hang()),
    "cancelled in a tool": (Tool(name="make", takes=100),),
    "deaf": (Say(text="a"), Deaf(seconds=60.0)),
}


@pytest.mark.parametrize("name", PLAYS)
@pytest.mark.parametrize("when", [0.0, 0.5, 20.0])
async def test_a_terminal_event_is_stored_in_the_phases_of_an_end_and_says_its_reason(
    autojump_clock: MockClock, name: str, when: float
) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        run = await session.submit(run_scripted(*PLAYS[name]))
        state = state_of(run)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(cancel, run, when)
            ends = 0
            async for event in run:
                if event.type in TERMINAL_TYPES:
                    ends += 1
                    assert state.is_over
                    assert state.phase not in {
                        RunPhase.WAITING,
                        RunPhase.DISPATCHED,
                        RunPhase.RUNNING,
                    }
            assert ends == 1
        assert state.stop is not None
        assert OUTCOMES[state.stop.cause].status is state.run.status
        await state.gone.wait()
        assert state.phase is RunPhase.OVER


async def test_a_run_that_waits_is_over_when_it_is_cancelled(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        first = await session.submit(run_scripted(Say(text="a"), Hang()))
        second = await session.submit(run_scripted(Say(text="b")))
        assert (state_of(first).phase, state_of(second).phase) == (
            RunPhase.RUNNING,
            RunPhase.WAITING,
        )
        assert second.cancel()
        assert state_of(second).phase is RunPhase.OVER
        assert not second.cancel()
        assert str((await second.result()).status) == "cancelled"
        first.cancel()


async def cancel(run: RunHandle, after: float) -> None:
    await trio.sleep(after)
    run.cancel()


def state_of(run: RunHandle) -> RunState:
    return run._entry  # pyright: ignore[reportPrivateUsage]


def test_no_other_module_of_the_manager_asks_for_the_phase() -> None:
    own = {"run_phase.py", "run_state.py"}
    sources = [path for path in README.parent.glob("*.py") if path.name not in own]
    assert len(sources) > 20
    asking = [path.name for path in sources if re.search(r"\bPhase\b|\.phase\b", path.read_text())]
    assert asking == []


async def test_a_run_that_was_not_launched_is_over_when_it_is_stopped_and_its_start_taken_back(
    autojump_clock: MockClock,
) -> None:
    run = await in_phase(RunPhase.DISPATCHED)
    took_back: list[RunState] = []
    run.start_postponed(lambda: took_back.append(run))
    assert run.end(StopReason(cause=EndCause.CALLER))
    assert (run.phase, run.gone.is_set(), run.due) == (RunPhase.OVER, True, math.inf)
    assert took_back == [run]


@pytest.mark.parametrize("phase", [RunPhase.STOPPING, RunPhase.CUT])
async def test_the_record_says_once_that_the_grace_was_not_enough(
    autojump_clock: MockClock, phase: RunPhase
) -> None:
    run = await in_phase(phase)
    for _ in range(3):
        shutdown.end_phase(run)
    assert run.phase is RunPhase.OVER
    written: list[object] = []
    while (item := run.inbox.pop()) is not None:
        assert isinstance(item, RecorderCommand)
        written.append(item.write)
    assert written == [
        RecordTransitions.run_stopped,
        RecordTransitions.events_noted,
        RecordTransitions.task_abandoned,
    ]


@pytest.mark.parametrize(
    "phase", [RunPhase.WAITING, RunPhase.DISPATCHED, RunPhase.STOPPING, RunPhase.LATE]
)
async def test_a_run_whose_recorder_has_died_is_cut_or_over_at_once(
    autojump_clock: MockClock, phase: RunPhase
) -> None:
    run = await in_phase(phase)
    run.abandon_task()
    then = {RunPhase.STOPPING: RunPhase.CUT, RunPhase.LATE: RunPhase.LATE}.get(phase, RunPhase.OVER)
    assert run.phase is then
    assert run.gone.is_set() == (then is RunPhase.OVER)
    assert run.stop is not None
    assert run.stop.cause is (EndCause.MANAGER_CRASH if then is RunPhase.OVER else EndCause.CALLER)


# The modules that write attributes of a run, beside the run and its session's recorder.
NOTES = {
    "shutdown.py": {"abandon_at", "due", "interruption", "played"},
    "timeouts.py": {"warned_at", "warned_of_deadline", "watch_number", "watched_until"},
}
RECORDER = {"run_state.py", "recorder.py", "transitions.py"}


def test_only_the_recorder_of_its_session_writes_a_run() -> None:
    fields = {name for of in RunState.__mro__ for name in getattr(of, "__slots__", ())}
    for path in README.parent.glob("*.py"):
        if path.name not in RECORDER:
            written = set(attributes_written(path)) & fields
            assert written <= NOTES.get(path.name, set()), path.name


def attributes_written(path: Path) -> Iterator[str]:
    """Yield the attributes of other objects than `self` that a module assigns."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Attribute(value=ast.Name(id="self")):
                pass
            case ast.Attribute(ctx=ast.Store(), attr=name):
                yield name
            case _:
                pass


def test_the_picture_in_the_page_is_that_of_the_table() -> None:
    assert f"```mermaid\n{mermaid_diagram(TRANSITIONS)}\n```" in README.read_text(encoding="utf-8")
