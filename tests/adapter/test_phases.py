"""The life cycle of a conversation, as a table of phases."""

from __future__ import annotations

from enum import StrEnum, auto
from typing import Final

import pytest

from sessionmgr.adapter.kit.conversation_run import PhasedConversationRun
from tests.adapters.claude.contexts import context


class Phase(StrEnum):
    ASKED = auto()
    STOPPING = auto()
    OVER = auto()


class Step(StrEnum):
    HEAR = auto()
    STOP = auto()
    END = auto()


TRANSITIONS: Final[dict[Phase, dict[Step, Phase]]] = {
    Phase.ASKED: {Step.STOP: Phase.STOPPING, Step.END: Phase.OVER},
    Phase.STOPPING: {Step.END: Phase.OVER},
    Phase.OVER: {},
}


def driver() -> PhasedConversationRun[str, str, Phase, Step]:
    return PhasedConversationRun(
        context(), TRANSITIONS, Phase.ASKED, lost=Step.END, minor=frozenset({Step.HEAR})
    )


def test_a_phase_without_steps_is_the_end_and_nothing_comes_after_it() -> None:
    it = driver()
    it.step(Step.STOP)
    assert (it.phase, it.is_over) == (Phase.STOPPING, False)
    it.step(Step.END)
    assert (it.phase, it.is_over) == (Phase.OVER, True)
    it.step(Step.STOP)
    assert it.phase is Phase.OVER


def test_a_step_that_is_not_in_the_table_is_an_error_unless_it_is_minor() -> None:
    it = driver()
    it.step(Step.STOP)
    it.step(Step.HEAR)
    assert it.phase is Phase.STOPPING
    with pytest.raises(KeyError):
        it.step(Step.STOP)


def test_frames_that_end_too_early_are_a_step() -> None:
    it = driver()
    it.end()
    assert (it.phase, it.is_over, it.is_broken) == (Phase.OVER, True, True)
