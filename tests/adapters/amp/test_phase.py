"""The phase table of a driver, and its picture."""

from __future__ import annotations

from pathlib import Path

import sessionmgr_adapters.amp
from sessionmgr.model.state_diagram import mermaid_diagram
from sessionmgr_adapters.amp.driver import TRANSITIONS, AmpPhase, AmpStep

README = Path(sessionmgr_adapters.amp.__file__).with_name("README.md")


def test_the_picture_in_the_readme_is_that_of_the_table() -> None:
    assert f"```mermaid\n{mermaid_diagram(TRANSITIONS)}\n```" in README.read_text(encoding="utf-8")


def test_each_phase_can_end_and_only_a_result_or_a_refusal_ends_it_well() -> None:
    assert set(TRANSITIONS) == set(AmpPhase)
    for phase, steps in TRANSITIONS.items():
        if phase in {AmpPhase.ENDED, AmpPhase.LEFT}:
            assert not steps
        else:
            assert steps[AmpStep.LEAVE] is AmpPhase.LEFT
            assert steps[AmpStep.RESULT] is steps[AmpStep.REFUSE] is AmpPhase.ENDED
