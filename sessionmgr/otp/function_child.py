"""Async functions as children."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, cast

from trio.lowlevel import disable_ki_protection

if TYPE_CHECKING:
    from sessionmgr.otp.child_task import ChildTask


class StartSignal:
    """The `task_status` of a function child, like the one of trio's `nursery.start`."""

    __slots__ = ("_life",)

    def __init__(self, life: ChildTask) -> None:
        self._life = life

    def started(self, value: object = None) -> None:
        """Report that the child is up; `ref.started_value` returns `value`.

        Raises:
            RuntimeError: It was called before.
        """
        if self._life.ready:
            raise RuntimeError("task_status.started() was called twice")
        self._life.value = value
        self._life.mark_ready()


@disable_ki_protection
async def run_function(life: ChildTask) -> None:
    """Run a function that is up as soon as it runs."""
    life.mark_ready()
    await _target(life)(*life.spec.args)


@disable_ki_protection
async def run_with_status(life: ChildTask) -> None:
    """Run a function that reports itself when it is up."""
    await _target(life)(*life.spec.args, task_status=StartSignal(life))
    if not life.ready and life.stop_reason is None:
        raise RuntimeError("the function ended without calling task_status.started()")


def _target(life: ChildTask) -> Callable[..., Awaitable[object]]:
    return cast("Callable[..., Awaitable[object]]", life.spec.target)
