"""Crashes of one node of a manager's tree, at the n-th await of its tasks or where it waits."""

import importlib
import inspect
from collections.abc import Callable
from typing import Any, cast

import trio
from trio.lowlevel import Task

from sessionmgr.otp.child_task import ChildTask
from sessionmgr.otp.crash_boundary import run_child
from tests.otp.fault_injection import child_task_of, codes

_LOCKS = importlib.import_module("trio._sync").__file__


class NodeCrash(Exception):
    """The injected crash."""


class NodeCrasher(trio.abc.Instrument):
    """Raises just before the n-th step of the tasks that belong to the node `of` describes."""

    def __init__(self, of: Callable[[ChildTask], bool], nth: int) -> None:
        self.struck = False
        self.over = False
        """Whether to inject nothing from now on."""
        self._of = of
        self._left = nth
        self._owners: dict[Task, ChildTask | None] = {}

    def before_task_step(self, task: Task) -> None:
        owner = self._owner(task)
        if (
            self.struck
            or self.over
            or owner is None
            or not self._of(owner)
            or not _can_crash(task, owner)
        ):
            return
        self._left -= 1
        if not self._left:
            self.struck = True
            internals: Any = task
            internals._next_send_fn = task.coro.throw
            internals._next_send = NodeCrash()

    def task_exited(self, task: Task) -> None:
        self._owners.pop(task, None)

    def _owner(self, task: Task) -> ChildTask | None:
        if task not in self._owners:
            self._owners[task] = owner_of(task)
        return self._owners[task]


def owner_of(task: Task | None) -> ChildTask | None:
    """Return the supervisor's child to which a task belongs."""
    while task is not None:
        if codes(task)[:1] == [run_child.__code__]:
            return child_task_of(task)
        nursery = task.parent_nursery
        task = None if nursery is None else nursery.parent_task
    return None


def _can_crash(task: Task, owner: ChildTask) -> bool:
    """Return whether a task runs code of its own and was not asked to stop."""
    if (
        inspect.getcoroutinestate(task.coro) != inspect.CORO_SUSPENDED
        or owner.stop_reason is not None
    ):
        return False
    frames = [frame for frame, _ in task.iter_await_frames()]
    # trio never raises an exception together with acquiring a lock.
    return len(frames) > 1 and not any(
        frame.f_code.co_filename == _LOCKS and "Event" not in frame.f_code.co_qualname
        for frame in frames
    )


def crash_at_wait(of: Callable[[ChildTask], bool]) -> bool:
    """Crash the node at the place where its task waits; False if there is none."""
    tasks: list[Task] = [cast("Task", trio.lowlevel.current_root_task())]
    for task in tasks:
        tasks += [each for nursery in task.child_nurseries for each in nursery.child_tasks]
        if codes(task)[:1] == [run_child.__code__] and of(child_task_of(task)):
            return _interrupt(task)
    return False


def _interrupt(task: Task) -> bool:
    def raise_crash() -> None:
        raise NodeCrash

    internals: Any = task
    if internals._abort_func is None:
        return False
    internals._attempt_abort(raise_crash)
    return True
