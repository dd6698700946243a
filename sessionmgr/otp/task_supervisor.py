"""Supervisor of tasks: functions that run once, for their results.

| in OTP | here |
|---|---|
| `Task.Supervisor.async_nolink/3` | `run = await tasks.async_nolink(fn, *args)` |
| `Task.await/2` | `await run.result()` |
| `{ref, result}` and `{:DOWN, …}` in `handle_info` | one `TaskDone` or one `Down` |
| `Task.Supervisor.async_stream_nolink` | `async with tasks.stream(fn, items) as results` |
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Literal, TypeVar, TypeVarTuple, overload

from trio.lowlevel import cancel_shielded_checkpoint, checkpoint_if_cancelled, enable_ki_protection

from sessionmgr.otp import report
from sessionmgr.otp.child_spec import DEFAULT_SHUTDOWN, ChildSpec, ShutdownTime
from sessionmgr.otp.context import current_child
from sessionmgr.otp.exit_reason import NORMAL, Crashed
from sessionmgr.otp.stream import Stream
from sessionmgr.otp.task_handle import TaskHandle, run_task
from sessionmgr.otp.unordered_supervisor import UnorderedSupervisor

if TYPE_CHECKING:
    from sessionmgr.otp.actor import Actor
    from sessionmgr.otp.child_task import ChildTask
    from sessionmgr.otp.errors import TaskCrashed

T = TypeVar("T")
Item = TypeVar("Item")
Ts = TypeVarTuple("Ts")


class TaskSupervisor(UnorderedSupervisor):
    """Supervisor of tasks whose failure is data: a crash harms neither owner nor siblings."""

    def __init__(self, *, name: str | None = None, max_children: int | None = None) -> None:
        super().__init__(name, max_children)
        # One for each `shutdown`; the handles hold the functions.
        self._specs: dict[ShutdownTime, ChildSpec[Actor]] = {}

    @enable_ki_protection
    async def async_nolink(
        self,
        fn: Callable[[*Ts], Awaitable[T]],
        *args: *Ts,
        shutdown: ShutdownTime = DEFAULT_SHUTDOWN,
    ) -> TaskHandle[T]:
        """Start `fn(*args)` and return the handle of its result.

        An actor that calls this gets one message about the end, `TaskDone` or `Down` in its
        `handle_info`, unless it waits in `run.result()`.

        Args:
            fn: The async function.
            args: Its arguments.
            shutdown: Seconds between a stop and a kill, by default 5.

        Raises:
            MaxChildren: The supervisor already has `max_children` children.
        """
        await checkpoint_if_cancelled()
        owner = current_child()
        if owner is not None and owner.mailbox is None:
            owner = None
        run = self.start_handle(TaskHandle(fn, args, owner), shutdown)
        await cancel_shielded_checkpoint()
        return run

    @overload
    def stream(
        self,
        fn: Callable[[Item], Awaitable[T]],
        items: Iterable[Item],
        *,
        max_concurrency: int = 8,
        ordered: bool = True,
        return_exceptions: Literal[False] = False,
    ) -> Stream[T]: ...
    @overload
    def stream(
        self,
        fn: Callable[[Item], Awaitable[T]],
        items: Iterable[Item],
        *,
        max_concurrency: int = 8,
        ordered: bool = True,
        return_exceptions: Literal[True],
    ) -> Stream[T | TaskCrashed]: ...
    def stream(
        self,
        fn: Callable[[Item], Awaitable[T]],
        items: Iterable[Item],
        *,
        max_concurrency: int = 8,
        ordered: bool = True,
        return_exceptions: bool = False,
    ) -> Stream[T] | Stream[T | TaskCrashed]:
        """Run `fn(item)` for each item, at most `max_concurrency` at once.

        `async with tasks.stream(fn, items) as results: async for result in results: ...` yields the
        results in the order of the items, or in the order of completion (`ordered=False`). A crash
        raises `TaskCrashed` in the place of its result; `return_exceptions=True` yields it instead.
        Items are taken when there is room for them. Leaving the block cancels the running calls.

        Args:
            fn: The async function.
            items: The items.
            max_concurrency: The maximum number of calls at once, by default 8.
            ordered: Whether results come in the order of the items; by default they do.
            return_exceptions: Whether a crash is a result instead of an exception; by default it is
                raised.
        """
        return Stream(self.start_handle, fn, items, max_concurrency, ordered, return_exceptions)

    @enable_ki_protection
    def start_handle(
        self, run: TaskHandle[T], shutdown: ShutdownTime = DEFAULT_SHUTDOWN
    ) -> TaskHandle[T]:
        """Start the task of a new handle.

        Args:
            run: The handle.
            shutdown: Seconds between a stop and a kill, by default 5.
        """
        self._require_running()
        spec = self._specs.get(shutdown)
        if spec is None:
            spec = self._specs[shutdown] = ChildSpec(
                kind="function",
                target=run_task,
                label="task",
                body=run_task,
                restart="temporary",
                shutdown=shutdown,
            )
        run.attach(self._start_child(spec, self._new_id(run.label)))
        return run

    def child_ready(self, record: ChildTask) -> None:
        """Ignore that a task runs: no task waits for that.

        Args:
            record: The record of the child.
        """

    def child_exited(self, record: ChildTask) -> None:
        """Handle that a task has ended.

        Args:
            record: The record of the child.
        """
        # Compares with `NORMAL` first: most tasks end so, and isinstance costs more than it looks.
        if record.reason is not NORMAL and isinstance(record.reason, Crashed):
            report.child_crashed(record, record.reason)
            if record.interrupted:
                self._begin_interrupted_stop()
        self._remove_child(record)
        run, record.value = record.value, None  # they refer to each other, in a cycle
        assert isinstance(run, TaskHandle)
        run.notify_ended()

    async def _supervise(self) -> None:
        while self._running_task.stop_reason is None:
            await self._pause()

    def _reject(self, item: object) -> None:
        """Do nothing: this inbox stays empty."""

    def _restarts_in_window(self) -> int:
        return 0
