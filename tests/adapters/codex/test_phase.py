"""The table of a run's phases."""

from __future__ import annotations

from pathlib import Path

import pytest

import sessionmgr_adapters.codex
from sessionmgr.model.state_diagram import mermaid_diagram
from sessionmgr_adapters.codex.phase import MINOR, TRANSITIONS, CodexPhase, CodexStep

PAGE = Path(sessionmgr_adapters.codex.__file__).with_name("README.md")
FINAL = {phase for phase in CodexPhase if not TRANSITIONS[phase]}


def test_the_page_shows_the_table() -> None:
    assert f"```mermaid\n{mermaid_diagram(TRANSITIONS)}\n```" in PAGE.read_text(encoding="utf-8")


def test_each_phase_is_reached_and_each_ends() -> None:
    assert {CodexPhase.OVER, CodexPhase.LOST, CodexPhase.UNREACHED} == FINAL
    assert set(TRANSITIONS) == set(CodexPhase)
    reached = {CodexPhase.CONNECTING}
    for _ in CodexPhase:
        reached |= {to for phase in reached for to in TRANSITIONS[phase].values()}
    assert reached == set(CodexPhase)


@pytest.mark.parametrize("phase", [phase for phase in CodexPhase if phase not in FINAL])
def test_a_run_can_be_interrupted_and_lost_and_refused_in_each_phase(phase: CodexPhase) -> None:
    assert {CodexStep.INTERRUPT, CodexStep.LOST, CodexStep.REFUSED} <= set(TRANSITIONS[phase])


def test_a_run_is_started_over_only_if_its_prompt_was_not_taken() -> None:
    before = {phase for phase in CodexPhase if CodexPhase.UNREACHED in TRANSITIONS[phase].values()}
    assert before == {CodexPhase.CONNECTING, CodexPhase.OPENING, CodexPhase.ASKED}
    assert {CodexStep.HEARD} == MINOR
    assert TRANSITIONS[CodexPhase.ASKED][CodexStep.HEARD] is CodexPhase.RUNNING
    assert TRANSITIONS[CodexPhase.OPENING][CodexStep.ASK] is CodexPhase.RUNNING
