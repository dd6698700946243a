"""The life of a run on an app-server, as a table."""

from __future__ import annotations

from pathlib import Path

import pytest

import sessionmgr_adapters.codex
from sessionmgr.model.state_diagram import mermaid_diagram
from sessionmgr_adapters.codex.phase import MINOR, TRANSITIONS, Phase, Step

PAGE = Path(sessionmgr_adapters.codex.__file__).with_name("README.md")
FINAL = {phase for phase in Phase if not TRANSITIONS[phase]}


def test_the_page_shows_the_table() -> None:
    assert f"```mermaid\n{mermaid_diagram(TRANSITIONS)}\n```" in PAGE.read_text(encoding="utf-8")


def test_each_phase_is_reached_and_each_ends() -> None:
    assert {Phase.OVER, Phase.LOST, Phase.UNREACHED} == FINAL
    assert set(TRANSITIONS) == set(Phase)
    reached = {Phase.CONNECTING}
    for _ in Phase:
        reached |= {to for phase in reached for to in TRANSITIONS[phase].values()}
    assert reached == set(Phase)


@pytest.mark.parametrize("phase", [phase for phase in Phase if phase not in FINAL])
def test_a_run_can_be_interrupted_and_lost_and_refused_in_each_phase(phase: Phase) -> None:
    assert {Step.INTERRUPT, Step.LOST, Step.REFUSED} <= set(TRANSITIONS[phase])


def test_a_run_is_started_over_only_if_its_prompt_was_not_taken() -> None:
    before = {phase for phase in Phase if Phase.UNREACHED in TRANSITIONS[phase].values()}
    assert before == {Phase.CONNECTING, Phase.OPENING, Phase.ASKED}
    assert {Step.HEARD} == MINOR
    assert TRANSITIONS[Phase.ASKED][Step.HEARD] is Phase.RUNNING
    assert TRANSITIONS[Phase.OPENING][Step.ASK] is Phase.RUNNING
