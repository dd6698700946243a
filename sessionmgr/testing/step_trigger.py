"""Doing something at a step of the scheduler, by its number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import Callable


class StepTrigger(trio.abc.Instrument):
    """Does something once, before the step of a task with this number, counted from its making.

    `trio.lowlevel.add_instrument(AtStep(7, scope.cancel))`, for all numbers until the deed comes
    too late, tries a cancel at every place where it can strike.
    """

    def __init__(self, number: int, deed: Callable[[], object]) -> None:
        self.left = number
        self.deed = deed

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """Count."""
        self.left -= 1
        if self.left == -1:
            self.deed()

    @property
    def is_done(self) -> bool:
        """Whether the step has come."""
        return self.left < 0
