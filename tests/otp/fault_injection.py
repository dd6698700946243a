"""Fault injection at the n-th step of a run: a cancel, a Ctrl-C, a crash.

The strategy: an instrument counts the steps that the tasks of a scenario take, and strikes
just before the n-th of them. By then the task has been woken, so whatever it waited for is
settled; the fault comes as if from the first instruction that it would run now. Raising n
until the scenario ends before its n-th step tries every place there is.

Python runs a signal's handler between any two instructions. So an interrupt is raised in the
very task whose turn it is, unless that is in code which trio protects (the end of a nursery,
say): then it is handed to trio, which gives it to the main task, as with a real Ctrl-C.
"""

from __future__ import annotations

import enum
import importlib
import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple, NoReturn, cast

import trio
import trio.testing
from trio.lowlevel import Task

from sessionmgr.otp.base_supervisor import BaseSupervisor
from sessionmgr.otp.child_task import ChildTask
from sessionmgr.otp.crash_boundary import run_child
from sessionmgr.otp.ref import ref_of

_PROTECTION = importlib.import_module("trio._core._ki")
_TRIO = str(Path(trio.__file__).parent)

# The longest scenario takes a few hundred steps.
STEP_LIMIT = 10_000


class StepFaultKind(enum.Enum):
    """What can go wrong."""

    CANCEL = "the scope around everything is cancelled"
    INTERRUPT = "KeyboardInterrupt is raised in the task whose turn it is"
    SIGNAL = "KeyboardInterrupt is handed to trio, for the main task"
    CRASH = "an exception is raised in an actor or a function child"


class StepFault(NamedTuple):
    """One fault; of a crash, `step` counts the steps of children alone."""

    kind: StepFaultKind
    step: int

    def __str__(self) -> str:
        return f"{self.kind.name} at step {self.step}"


class InjectedCrashError(Exception):
    """The crash that was asked for."""


class HangError(AssertionError):
    """A run that does not end; the text shows its tasks."""


class FaultInjector(trio.abc.Instrument):
    """The instrument. It minds the tasks below the one that calls `begin`."""

    def __init__(
        self,
        faults: Sequence[StepFault],
        clock: trio.testing.MockClock,
        look: Callable[[], bool] = lambda: False,
    ) -> None:
        self.hang: str | None = None
        self.struck: list[StepFault] = []
        # What `look` saw just before the last fault.
        self.saw = False
        # Whether the crash hit a child that was not up yet.
        self.unborn = False
        self.steps = 0
        self.child_steps = 0
        # The main task and all below it that have not ended.
        self.tasks: set[Task] = set()
        # The child in whose task an interrupt was raised.
        self.victim: str | None = None
        self._pending = tuple(faults)
        self._look = look
        self._clock: Any = clock
        self._outer = trio.CancelScope()
        self._main: Task | None = None
        self._idle = False

    def begin(self) -> trio.CancelScope:
        """Mind the running task from now on, and give the scope to put around everything."""
        self._main = trio.lowlevel.current_task()
        self.tasks.add(self._main)
        trio.lowlevel.add_instrument(self)
        return self._outer

    def task_spawned(self, task: Task) -> None:
        nursery = task.parent_nursery
        if nursery is not None and nursery.parent_task in self.tasks:
            self.tasks.add(task)

    def task_exited(self, task: Task) -> None:
        self.tasks.discard(task)

    def before_task_step(self, task: Task) -> None:
        self._idle = False
        if task not in self.tasks:
            return
        self.steps += 1
        for kind, step in self._pending:
            if kind is StepFaultKind.CRASH:
                if not is_worker(task):
                    continue
                self.child_steps += 1
            if step == (self.child_steps if kind is StepFaultKind.CRASH else self.steps):
                self._strike(kind, task)
                self.struck.append(StepFault(kind, step))
        if self.steps > STEP_LIMIT:
            self._give_up(f"still not at an end after {STEP_LIMIT} steps")

    def before_io_wait(self, timeout: float) -> None:
        if self._idle and self.tasks:
            now = trio.lowlevel.current_statistics()
            if (
                now.seconds_to_next_deadline == math.inf
                and not now.tasks_runnable
                and not now.run_sync_soon_queue_size
            ):
                self._give_up("everybody waits, and nothing will happen")
        self._idle = True

    def _strike(self, kind: StepFaultKind, task: Task) -> None:
        self.saw = self._look()
        match kind:
            case StepFaultKind.CANCEL:
                self._outer.cancel()
            case StepFaultKind.CRASH:
                self.unborn = not child_task_of(task).ready
                _throw(task, InjectedCrashError())
            case StepFaultKind.INTERRUPT if not is_protected(task):
                if codes(task)[0] is run_child.__code__:
                    self.victim = child_task_of(task).id
                _throw(task, KeyboardInterrupt())
            case _:
                cast("Any", task)._runner.deliver_ki()

    def _give_up(self, why: str) -> None:
        # What an instrument raises is logged and no more. What a clock raises ends the run.
        if self.hang is None:
            assert self._main is not None
            self.hang = "\n".join([why, *tree_of_tasks(self._main)])
            self._clock.current_time = self._end_of_time

    def _end_of_time(self) -> NoReturn:
        raise HangError(self.hang)


def _throw(task: Task, error: BaseException) -> None:
    # As trio does with an awaitable of another library; what the task was to be sent is lost.
    internals: Any = task
    internals._next_send_fn = task.coro.throw
    internals._next_send = error


def is_protected(task: Task) -> bool:
    """Say whether a real Ctrl-C at this point would go to the main task instead."""
    status: Any = _PROTECTION._CODE_KI_PROTECTION_STATUS_WMAP
    for code in reversed(codes(task)):
        try:
            return bool(status[code])
        except KeyError:
            continue
    return bool(cast("Any", task)._ki_protected)


def is_worker(task: Task) -> bool:
    """Say whether the task is a child that runs code of its own, which may crash."""
    stack = codes(task)
    return (
        stack[0] is run_child.__code__
        and len(stack) > 1
        and BaseSupervisor.run.__code__ not in stack
        and inspect.getcoroutinestate(task.coro) == inspect.CORO_SUSPENDED
        and not is_protected(task)
    )


def child_task_of(task: Task) -> ChildTask:
    """Give the child whose task it is."""
    life = cast("Any", task.coro).cr_frame.f_locals["record"]
    assert isinstance(life, ChildTask)
    return life


def codes(task: Task) -> list[CodeType]:
    """Give what the task is in, outermost first."""
    return [frame.f_code for frame, _ in task.iter_await_frames()]


def tree_of_tasks(task: Task, depth: int = 0) -> Iterator[str]:
    """Draw the task and all below it, each with the place where it waits."""
    place = "?"
    for frame, line in task.iter_await_frames():
        if not frame.f_code.co_filename.startswith(_TRIO):
            place = f"{Path(frame.f_code.co_filename).name}:{line} in {frame.f_code.co_name}"
    who = repr(ref_of(child_task_of(task))) if codes(task)[0] is run_child.__code__ else task.name
    yield f"{'  ' * depth}- {who} at {place}"
    for nursery in task.child_nurseries:
        for child in sorted(nursery.child_tasks, key=lambda child: child.name):
            yield from tree_of_tasks(child, depth + 1)
