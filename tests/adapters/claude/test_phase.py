"""The phase table of a driver, and its picture."""

from __future__ import annotations

from pathlib import Path

import sessionmgr_adapters.claude
from sessionmgr.model.state_diagram import mermaid_diagram
from sessionmgr_adapters.claude.phase import TRANSITIONS, ClaudePhase, ClaudeStep

README = Path(sessionmgr_adapters.claude.__file__).with_name("README.md")


def test_the_picture_in_the_readme_is_that_of_the_table() -> None:
    assert f"```mermaid\n{mermaid_diagram(TRANSITIONS)}\n```" in README.read_text(encoding="utf-8")


def test_each_phase_can_be_reached_and_left_or_is_an_end() -> None:
    reached = {to for steps in TRANSITIONS.values() for to in steps.values()}
    assert set(TRANSITIONS) == set(ClaudePhase)
    assert reached | {ClaudePhase.CONFIGURING} == set(ClaudePhase)
    ends = {phase for phase, steps in TRANSITIONS.items() if not steps}
    assert ends == {ClaudePhase.DONE, ClaudePhase.STOPPED, ClaudePhase.LOST, ClaudePhase.SILENT}


def test_frames_that_end_lose_a_run_in_whatever_phase_it_is() -> None:
    on = [steps for steps in TRANSITIONS.values() if steps]
    assert all(steps[ClaudeStep.LOSE] is ClaudePhase.LOST for steps in on)
    assert all(
        steps[ClaudeStep.INTERRUPT] in {ClaudePhase.STOPPED, ClaudePhase.STOPPING} for steps in on
    )


def test_an_agent_that_has_answered_is_not_given_up_on() -> None:
    patient = {phase for phase, steps in TRANSITIONS.items() if ClaudeStep.GIVE_UP in steps}
    assert patient == {
        ClaudePhase.CONFIGURING,
        ClaudePhase.PROMPTED,
        ClaudePhase.STOPPING,
        ClaudePhase.ENDING,
    }
