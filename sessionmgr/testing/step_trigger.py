"""An action at one step of trio's scheduler, selected by its number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import Callable


class StepTrigger(trio.abc.Instrument):
    """Runs an action once, before the task step with this number after its creation.

    `trio.lowlevel.add_instrument(StepTrigger(7, scope.cancel))`, repeated for all numbers until
    the action comes too late, tries a cancel at every place where it can happen.
    """

    def __init__(self, number: int, action: Callable[[], object]) -> None:
        self.left = number
        self._action = action

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """Count the step, and run the action at its number."""
        self.left -= 1
        if self.left == -1:
            self._action()

    @property
    def is_done(self) -> bool:
        """Whether the action has run."""
        return self.left < 0
