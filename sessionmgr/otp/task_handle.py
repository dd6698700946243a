"""A task that somebody wants the result of, but whose crash is its own."""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import msgspec
from outcome import Error, Outcome, Value
from trio.lowlevel import (
    Abort,
    Task,
    checkpoint_if_cancelled,
    current_task,
    disable_ki_protection,
    enable_ki_protection,
    reschedule,
    wait_task_rescheduled,
)

from sessionmgr.otp.context import current_child
from sessionmgr.otp.errors import TaskCancelled, TaskCrashed
from sessionmgr.otp.exit_reason import SHUTDOWN, Crashed, ExitReason, cause_of
from sessionmgr.otp.mailbox import InfoMessage
from sessionmgr.otp.ref import Down, ExitSource, ref_of

if TYPE_CHECKING:
    from sessionmgr.otp.actor import Actor
    from sessionmgr.otp.child_task import ChildTask
    from sessionmgr.otp.ref import Ref

T = TypeVar("T", covariant=True)


class TaskDone(msgspec.Struct, frozen=True):
    """Message that a task which this actor started with `async_nolink` has a result."""

    run: TaskHandle[object]
    value: object


class _PendingResult(enum.Enum):
    PENDING = "pending"


PENDING: Final = _PendingResult.PENDING


class TaskHandle(ExitSource, Generic[T]):
    """One call of a function under a `TaskSupervisor`."""

    __slots__ = (
        "_args",
        "_delivered",
        "_fn",
        "_life",
        "_listener",
        "_owner",
        "_owner_waits",
        "_result",
        "_waiter",
    )

    def __init__(
        self,
        fn: Callable[..., Awaitable[T]],
        args: tuple[object, ...],
        owner: ChildTask | None,
        listener: Callable[[], None] | None = None,
    ) -> None:
        self._fn = fn
        self._args = args
        self._owner = owner
        self._listener = listener
        # How many tasks of the owner wait in `result`, and whether one had it: so that there
        # is no message as well.
        self._owner_waits = 0
        self._delivered = False
        self._result: T | _PendingResult = PENDING
        self._life: ChildTask | None = None
        # The first who waits for the result; few runs have a second one.
        self._waiter: Task | None = None

    def __repr__(self) -> str:
        return f"<TaskHandle {self._child_task.name}: {self._child_task.state}>"

    @property
    def label(self) -> str:
        """What to call it."""
        return getattr(self._fn, "__name__", "task")

    @enable_ki_protection
    def attach(self, life: ChildTask) -> None:
        """Hear which child this run is.

        Args:
            life: The record of the child.
        """
        self._life = life
        life.value = self

    def notify_ended(self) -> None:
        """Hear that the child has ended, and tell whoever waits for that."""
        if self._waiter is not None:
            reschedule(self._waiter)
            self._waiter = None
        if self._listener is not None:
            self._listener()
        if not self._owner_waits:
            self._notify_owner()

    def _notify_owner(self) -> None:
        if self._owner is None:
            return
        if self._result is not PENDING:
            self._owner.notify(TaskDone(self, self._result))
        else:
            reason = self._child_task.reason
            assert reason is not None
            self._owner.notify(Down(self, self.ref, reason))

    @property
    def _child_task(self) -> ChildTask:
        assert self._life is not None
        return self._life

    @property
    def ref(self) -> Ref[Actor]:
        """The child that runs it."""
        return ref_of(self._child_task)

    @property
    def done(self) -> bool:
        """Whether it has ended, whichever way."""
        return self._child_task.reason is not None

    @property
    def reason(self) -> ExitReason | None:
        """How it ended; None while it runs."""
        return self._child_task.reason

    @property
    def outcome(self) -> Outcome[T] | None:
        """What it came to: a value or an error; None while it runs."""
        if not self.done:
            return None
        return Error(self._error()) if self._result is PENDING else Value(self._result)

    @enable_ki_protection
    async def result(self) -> T:
        """Wait for the end and give the result.

        When the actor that owns the run calls this, it gets no message about it as well.

        Raises:
            TaskCrashed: the function raised; that is the `__cause__`.
            TaskCancelled: it was cancelled before it had a result.
        """
        life = self._child_task
        owner = self._owner
        if owner is not None and owner is current_child():
            await self._wait_as_owner(owner)
        elif life.reason is not None:
            # The others had their turn when it was started: a second one for each short task
            # would cost a sixth of all it costs.
            await checkpoint_if_cancelled()
        elif self._waiter is None:
            self._waiter = current_task()
            await wait_task_rescheduled(self._abort_wait)
        else:
            await life.wait_ended()
        if self._result is PENDING:
            raise self._error()
        return self._result

    def _abort_wait(self, _raise_cancel: Callable[[], None]) -> Abort:
        self._waiter = None
        return Abort.SUCCEEDED

    @enable_ki_protection
    async def _wait_as_owner(self, owner: ChildTask) -> None:
        """Wait, in the owner's stead for the message that it would get."""
        was_done = self.done
        self._owner_waits += 1
        try:
            await self._child_task.wait_ended()
        except BaseException:
            # Cancelled while it waited: then the message has to do. It may have ended in
            # this very tick, and kept silent because of us.
            if self.done and not (was_done or self._delivered) and self._owner_waits == 1:
                self._notify_owner()
            raise
        finally:
            self._owner_waits -= 1
        self._delivered = True
        if owner.mailbox is not None:
            owner.mailbox.discard(self._is_own_notification)

    def cancel(self) -> None:
        """Stop it; without effect when it has ended."""
        self._child_task.request_stop(SHUTDOWN)

    def _error(self) -> TaskCrashed | TaskCancelled:
        life = self._child_task
        if not isinstance(life.reason, Crashed):
            return TaskCancelled(life.name)
        error = TaskCrashed(life.name, life.reason)
        error.__cause__ = cause_of(life.reason)
        return error

    def _is_own_notification(self, item: object) -> bool:
        if not isinstance(item, InfoMessage):
            return False
        news = item.message
        return (isinstance(news, TaskDone) and news.run is self) or (
            isinstance(news, Down) and news.monitor is self
        )


@disable_ki_protection
async def run_task(life: ChildTask) -> None:
    """Be the body of a task: the run is in the life's `value`."""
    run: TaskHandle[object] = life.value  # type: ignore[assignment]  # `begin` put it there
    life.ready = True
    run._result = await run._fn(*run._args)  # pyright: ignore[reportPrivateUsage]  # one frame less
