"""The life cycle of a conversation, as a table of phases."""

from __future__ import annotations

from enum import StrEnum, auto
from typing import Final

import pytest

from sessionmgr.adapter.kit.conversation_run import PhasedConversationRun
from tests.adapters.claude.run_contexts import context


class ExamplePhase(StrEnum):
    ASKED = auto()
    STOPPING = auto()
    OVER = auto()


class ExampleStep(StrEnum):
    HEAR = auto()
    STOP = auto()
    END = auto()


TRANSITIONS: Final[dict[ExamplePhase, dict[ExampleStep, ExamplePhase]]] = {
    ExamplePhase.ASKED: {
        ExampleStep.STOP: ExamplePhase.STOPPING,
        ExampleStep.END: ExamplePhase.OVER,
    },
    ExamplePhase.STOPPING: {ExampleStep.END: ExamplePhase.OVER},
    ExamplePhase.OVER: {},
}


def driver() -> PhasedConversationRun[str, str, ExamplePhase, ExampleStep]:
    return PhasedConversationRun(
        context(),
        TRANSITIONS,
        ExamplePhase.ASKED,
        lost=ExampleStep.END,
        minor=frozenset({ExampleStep.HEAR}),
    )


def test_a_phase_without_steps_is_the_end_and_nothing_comes_after_it() -> None:
    it = driver()
    it.take_step(ExampleStep.STOP)
    assert (it.phase, it.is_over) == (ExamplePhase.STOPPING, False)
    it.take_step(ExampleStep.END)
    assert (it.phase, it.is_over) == (ExamplePhase.OVER, True)
    it.take_step(ExampleStep.STOP)
    assert it.phase is ExamplePhase.OVER


def test_a_step_that_is_not_in_the_table_is_an_error_unless_it_is_minor() -> None:
    it = driver()
    it.take_step(ExampleStep.STOP)
    it.take_step(ExampleStep.HEAR)
    assert it.phase is ExamplePhase.STOPPING
    with pytest.raises(KeyError):
        it.take_step(ExampleStep.STOP)


def test_frames_that_end_too_early_are_a_step() -> None:
    it = driver()
    it.end()
    assert (it.phase, it.is_over, it.is_broken) == (ExamplePhase.OVER, True, True)
