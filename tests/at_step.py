"""Doing something at a step of the scheduler, by its number."""

from collections.abc import Callable

import trio


class AtStep(trio.abc.Instrument):
    """Does something once, before the step of a task with this number."""

    def __init__(self, number: int, deed: Callable[[], object]) -> None:
        self.left = number
        self.deed = deed

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.left -= 1
        if self.left == -1:
            self.deed()

    @property
    def is_done(self) -> bool:
        return self.left < 0
