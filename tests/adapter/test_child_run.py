"""A run that is one child process: its phases, and the time that the child has to exit."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import pytest
import trio

import sessionmgr.adapter
from sessionmgr.adapter import Options, RunContext
from sessionmgr.adapter.kit.child_run import TRANSITIONS, ChildPhase, ChildRun, ChildStep
from sessionmgr.adapter.kit.run_adapter import RunAdapter
from sessionmgr.adapter.kit.run_end import exit_failure
from sessionmgr.manager import open_manager
from sessionmgr.model import Json
from sessionmgr.model.state_diagram import mermaid_diagram
from sessionmgr.process import Command
from sessionmgr.process.escalation import Escalation
from sessionmgr.process.exit_report import ExitReport
from sessionmgr.wire import Line

CLOSES_AND_EXITS = """
import os, time
os.close(1)
time.sleep(0.2)
os._exit(7)
"""
SAYS_BYE_AND_STAYS = """
import time
print("bye", flush=True)
time.sleep(1000)
"""
IS_STOPPED = """
import time
print("stop me", flush=True)
time.sleep(1000)
"""
STAYS = "import time; time.sleep(1000)"
FAIL_AFTER = 60.0
PAGE = Path(sessionmgr.adapter.__file__).with_name("README.md")


class SoonRun(ChildRun):
    """Ends its child at once when its time to exit is over."""

    def __init__(self, run: RunContext, lingers: float | None) -> None:
        super().__init__(run, ladder=Escalation(polite=0.0, term=10.0))
        self.lingers = lingers
        self.phases: list[ChildPhase] = []

    def note(self) -> None:
        self.phases.append(self.phase)

    def on_started(self) -> None:
        self.note()

    def handle_lines(self, lines: Sequence[Line]) -> None:
        if b"bye" in lines:
            self.done()
            self.note()
        if b"stop me" in lines:
            self.stop()
            self.note()

    def on_exit(self, facts: ExitReport) -> None:
        self.note()
        super().on_exit(facts)


class SoonOptions(Options, frozen=True, kw_only=True):
    lingers: float | None = 0.0
    stop_first: bool = False
    again: bool = False


class SoonAdapter(RunAdapter[SoonRun]):
    name = "soon"
    options: ClassVar[type[Options]] = SoonOptions
    runs: ClassVar[list[SoonRun]] = []

    async def run(self, run: RunContext) -> None:
        options = SoonOptions.of(run.options)
        child = SoonRun(run, options.lingers)
        self.runs.append(child)
        child.note()
        argv = (sys.executable, "-I", "-S", "-c", run.prompt)
        command = Command(argv=argv, cwd=run.cwd, env=dict(run.env))
        with self.active_runs(run, child):
            if options.stop_first:
                child.stop()
                child.note()
            facts = await child.run_child(command)
            if options.again:
                facts = await child.run_child(command)
        await run.fail(exit_failure(facts, child.tail))


async def played(script: str, **options: Json) -> tuple[str, list[ChildPhase]]:
    """Run a script, and return how it failed and the phases of its run."""
    with trio.fail_after(FAIL_AFTER):
        async with open_manager(adapters={"soon": SoonAdapter}) as manager:
            session = await manager.open_session("soon")
            async with session.start(script, options=options) as run:
                result = await run.result()
    assert result.failure is not None
    return result.failure.message, SoonAdapter.runs.pop().phases


@pytest.mark.parametrize(
    ("script", "lingers", "end"),
    [
        (CLOSES_AND_EXITS, 20.0, "exit code 7"),
        (SAYS_BYE_AND_STAYS, 0.1, "ended by SIGTERM"),
    ],
)
async def test_a_child_has_some_time_to_exit_after_its_last_output(
    script: str, lingers: float, end: str
) -> None:
    message, _ = await played(script, lingers=lingers)
    assert message == end


def test_the_picture_of_its_phases_is_their_table() -> None:
    picture = f"```mermaid\n{mermaid_diagram(TRANSITIONS)}\n```"
    assert picture in PAGE.read_text(encoding="utf-8")


def test_each_phase_is_reached_and_a_run_can_be_stopped_in_it() -> None:
    assert set(TRANSITIONS) == set(ChildPhase)
    reached = {to for steps in TRANSITIONS.values() for to in steps.values()}
    assert reached | {ChildPhase.READY} == set(ChildPhase)
    stopped = {steps[ChildStep.STOP] for steps in TRANSITIONS.values()}
    assert stopped == {ChildPhase.CALLED_OFF, ChildPhase.STOPPING, ChildPhase.STOPPED}


def test_a_run_that_was_stopped_stays_stopped() -> None:
    stopped = {ChildPhase.CALLED_OFF, ChildPhase.STOPPING, ChildPhase.STOPPED}
    assert {to for phase in stopped for to in TRANSITIONS[phase].values()} == stopped


async def test_a_run_goes_from_phase_to_phase_with_its_child() -> None:
    once = [ChildPhase.RUNNING, ChildPhase.EXITED]
    _, phases = await played("pass")
    assert phases == [ChildPhase.READY, *once]
    _, phases = await played("pass", again=True)
    assert phases == [ChildPhase.READY, *once, *once]
    _, phases = await played(SAYS_BYE_AND_STAYS)
    assert phases == [ChildPhase.READY, ChildPhase.RUNNING, ChildPhase.FINISHING, ChildPhase.EXITED]


@pytest.mark.parametrize("lingers", [0.0, 20.0, None])
async def test_a_child_that_has_all_its_time_left_is_ended_when_its_run_is_stopped(
    lingers: float | None,
) -> None:
    message, phases = await played(IS_STOPPED, lingers=lingers)
    assert message == "ended by SIGTERM"
    assert phases == [ChildPhase.READY, ChildPhase.RUNNING, ChildPhase.STOPPING, ChildPhase.STOPPED]


async def test_a_child_that_is_started_after_its_run_was_stopped_is_ended_at_once() -> None:
    message, phases = await played(STAYS, lingers=None, stop_first=True, again=True)
    assert message == "ended by SIGTERM"
    once = [ChildPhase.STOPPING, ChildPhase.STOPPED]
    assert phases == [ChildPhase.READY, ChildPhase.CALLED_OFF, *once, *once]
