"""Async functions as children."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, cast

from trio.lowlevel import disable_ki_protection

if TYPE_CHECKING:
    from sessionmgr.otp.child_task import ChildTask


class StartSignal:
    """The `task_status` of a function child, like the one of trio's `nursery.start`."""

    __slots__ = ("_record",)

    def __init__(self, record: ChildTask) -> None:
        self._record = record

    def started(self, value: object = None) -> None:
        """Report that the child is up; `ref.started_value` returns `value`.

        Raises:
            RuntimeError: It was called before.
        """
        if self._record.ready:
            raise RuntimeError("task_status.started() was called twice")
        self._record.value = value
        self._record.mark_ready()


@disable_ki_protection
async def run_function(record: ChildTask) -> None:
    """Run a function that is up as soon as it runs."""
    record.mark_ready()
    await _target(record)(*record.spec.args)


@disable_ki_protection
async def run_with_status(record: ChildTask) -> None:
    """Run a function that reports itself when it is up."""
    await _target(record)(*record.spec.args, task_status=StartSignal(record))
    if not record.ready and record.stop_reason is None:
        raise RuntimeError("the function ended without calling task_status.started()")


def _target(record: ChildTask) -> Callable[..., Awaitable[object]]:
    return cast("Callable[..., Awaitable[object]]", record.spec.target)
