"""Handle of a task under a `TaskSupervisor`: its result, its crash and its cancellation."""

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
    """Handle of one call of a function under a `TaskSupervisor`."""

    __slots__ = (
        "_args",
        "_delivered",
        "_fn",
        "_listener",
        "_owner",
        "_owner_waits",
        "_record",
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
        # Number of the owner's tasks that wait in `result`, and whether one had the result: then
        # the owner gets no message as well.
        self._owner_waits = 0
        self._delivered = False
        self._result: T | _PendingResult = PENDING
        self._record: ChildTask | None = None
        # The first task that waits for the result; few handles have a second one.
        self._waiter: Task | None = None

    def __repr__(self) -> str:
        return f"<TaskHandle {self._child_task.name}: {self._child_task.state}>"

    @property
    def label(self) -> str:
        """The name of the function."""
        return getattr(self._fn, "__name__", "task")

    @enable_ki_protection
    def attach(self, record: ChildTask) -> None:
        """Set the child that runs this task.

        Args:
            record: The record of the child.
        """
        self._record = record
        record.value = self

    def notify_ended(self) -> None:
        """Wake waiting tasks and notify the owner: the child has ended."""
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
        assert self._record is not None
        return self._record

    @property
    def ref(self) -> Ref[Actor]:
        """The child that runs the task."""
        return ref_of(self._child_task)

    @property
    def done(self) -> bool:
        """Whether the task has ended, for any reason."""
        return self._child_task.reason is not None

    @property
    def reason(self) -> ExitReason | None:
        """The exit reason; None while it runs."""
        return self._child_task.reason

    @property
    def outcome(self) -> Outcome[T] | None:
        """The result or the error; None while it runs."""
        if not self.done:
            return None
        return Error(self._error()) if self._result is PENDING else Value(self._result)

    @enable_ki_protection
    async def result(self) -> T:
        """Wait for the end and return the result.

        If the actor that owns the task calls this, it gets no message about the end.

        Raises:
            TaskCrashed: The function raised an exception, which is the `__cause__`.
            TaskCancelled: It was cancelled before it had a result.
        """
        record = self._child_task
        owner = self._owner
        if owner is not None and owner is current_child():
            await self._wait_as_owner(owner)
        elif record.reason is not None:
            # No full checkpoint: other tasks ran when this one was started, and a second turn would
            # cost a sixth of a short task.
            await checkpoint_if_cancelled()
        elif self._waiter is None:
            self._waiter = current_task()
            await wait_task_rescheduled(self._abort_wait)
        else:
            await record.wait_ended()
        if self._result is PENDING:
            raise self._error()
        return self._result

    def _abort_wait(self, _raise_cancel: Callable[[], None]) -> Abort:
        self._waiter = None
        return Abort.SUCCEEDED

    @enable_ki_protection
    async def _wait_as_owner(self, owner: ChildTask) -> None:
        """Wait in the owner: it then needs no message."""
        was_done = self.done
        self._owner_waits += 1
        try:
            await self._child_task.wait_ended()
        except BaseException:
            # Cancelled while it waited: then the message is needed after all. The task may have
            # ended in this very tick, without a message because of this wait.
            if self.done and not (was_done or self._delivered) and self._owner_waits == 1:
                self._notify_owner()
            raise
        finally:
            self._owner_waits -= 1
        self._delivered = True
        if owner.mailbox is not None:
            owner.mailbox.discard(self._is_own_notification)

    def cancel(self) -> None:
        """Stop the task; without effect if it has ended."""
        self._child_task.request_stop(SHUTDOWN)

    def _error(self) -> TaskCrashed | TaskCancelled:
        record = self._child_task
        if not isinstance(record.reason, Crashed):
            return TaskCancelled(record.name)
        error = TaskCrashed(record.name, record.reason)
        error.__cause__ = cause_of(record.reason)
        return error

    def _is_own_notification(self, item: object) -> bool:
        if not isinstance(item, InfoMessage):
            return False
        news = item.message
        return (isinstance(news, TaskDone) and news.run is self) or (
            isinstance(news, Down) and news.monitor is self
        )


@disable_ki_protection
async def run_task(record: ChildTask) -> None:
    """Run the function of a task, whose handle is the child's `value`."""
    run: TaskHandle[object] = record.value  # type: ignore[assignment]  # `begin` put it there
    record.ready = True
    run._result = await run._fn(*run._args)  # pyright: ignore[reportPrivateUsage]  # one frame less
