"""Record of one incarnation of a child: its task, its stop, and the notification of its end.

The strategy, once for all kinds of children:

- The crash boundary (`crash_boundary.run_child`) runs the child's body in a shielded scope of its
  own, so that an outer cancel cannot reach the child past its supervisor, and turns any `Exception`
  of the body into an exit reason. KeyboardInterrupt and the like pass through.
- A child that merely waits for messages is stopped with a flag and a wake-up; only a busy one is
  cancelled. That is four times cheaper, so stopping ten thousand idle actors is quick.
- `finish` publishes the end. It runs without a checkpoint, so that no task can see half of it, and
  in this order: names are freed, calls fail, then links and monitors are notified, then waiting
  tasks, then the supervisor.

This module imports neither references nor actors: they are built on the record, which knows its
observers by the protocols below.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

import trio
from outcome import Value
from trio.lowlevel import (
    Abort,
    Task,
    enable_ki_protection,
    reschedule,
)

from sessionmgr.otp.exit_reason import KILLED, Crashed, ExitReason, Normal
from sessionmgr.otp.mailbox import InfoMessage, Mailbox, PendingCall

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sessionmgr.otp.call_deadlines import DeadlineTable
    from sessionmgr.otp.child_spec import ChildSpec


class ParentSupervisor(Protocol):
    """The part of a supervisor that its children use."""

    @property
    def name(self) -> str:
        """Its path from the root."""
        ...

    @property
    def deadlines(self) -> DeadlineTable:
        """The deadlines of calls into its tree."""
        ...

    def child_ready(self, record: ChildTask) -> None:
        """Handle that `record` is up."""
        ...

    def child_exited(self, record: ChildTask) -> None:
        """Handle that `record` has ended with `record.reason`."""
        ...


class ExitObserver(Protocol):
    """A monitor, as the monitored child and the watching child know it."""

    def notify(self, reason: ExitReason) -> None:
        """Report the end of the monitored child to the watcher."""
        ...

    def cancel(self) -> None:
        """Remove the monitor."""
        ...


class NameTable(Protocol):
    """A registry, as a child with names in it knows it."""

    def remove_child(self, child: ChildTask, /) -> None:
        """Free the names of a child that has ended."""
        ...


class ChildTask:
    """The record of one incarnation; users hold a `Ref` to it."""

    # Attributes that few children set are class attributes until then: every task has such a
    # record, and ten thousand idle ones must be cheap.
    __slots__ = (
        "__dict__",
        "actor",
        "born",
        "cached_ref",
        "current",
        "handled",
        "id",
        "mailbox",
        "owner",
        "parked",
        "ready",
        "reason",
        "restarts",
        "scope",
        "spec",
        "starter",
        "stop_reason",
        "task",
        "value",
    )

    # Stopping: the deadline of `terminate` and its scope, and whether a kill skips it.
    deadline: float = math.inf
    terminate_scope: trio.CancelScope | None = None
    killed: bool = False
    # Whether a restart is ruled out; the time since which it is up, if there is a back-off.
    no_restart: bool = False
    up_since: float | None = None
    terminate_callback: Callable[[ExitReason], Awaitable[None]] | None = None
    # Makes `Exit` messages if the actor traps exits; calls that will be answered later.
    make_exit_message: Callable[[ChildTask, ExitReason], object] | None = None
    deferred: set[PendingCall] | None = None
    # The children for which this one waits: in calls, and while it starts or stops a child.
    waits_for: list[ChildTask] | tuple[()] = ()
    # Observers of the end.
    waiters: list[Task] | None = None
    monitors: dict[ExitObserver, None] | None = None
    watching: dict[ExitObserver, None] | None = None
    links: dict[ChildTask, None] | None = None
    names: dict[NameTable, None] | None = None

    def __init__(
        self, spec: ChildSpec[object], id: str, owner: ParentSupervisor, restarts: int = 0
    ) -> None:
        self.spec = spec
        self.id = id
        self.owner = owner
        self.restarts = restarts
        # Its `Ref`, after the first use; see `ref_of`, which keeps references identical.
        self.cached_ref: Any = None
        self.born = trio.current_time()
        self.task: Task | None = None
        # The task that waits in `start_child` until this one is up.
        self.starter: Task | None = None
        self.scope: trio.CancelScope | None = None
        # The phases: not ready, ready, stop requested, ended with a reason.
        self.ready = False
        self.parked = False
        self.stop_reason: ExitReason | None = None
        self.reason: ExitReason | None = None
        self.mailbox = None if spec.bound is None else Mailbox(spec.bound)
        self.handled = 0
        self.actor: object = None
        # The value that a function passed to `task_status.started`; of a task, its `TaskHandle`.
        self.value: object = None
        # The message in progress.
        self.current: object = None

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C or the like ended it: then the whole tree ends, without restarts."""
        return isinstance(self.reason, Crashed) and not isinstance(self.reason.error, Exception)

    def has_been_up_for(self, seconds: float) -> bool:
        """Return whether it has been up that long; valid only for a child with a back-off."""
        return self.up_since is not None and trio.current_time() - self.up_since >= seconds

    @enable_ki_protection
    def begin_waiting(self, other: ChildTask) -> None:
        """Record that this child waits for `other`."""
        if isinstance(self.waits_for, tuple):
            self.waits_for = []
        self.waits_for.append(other)

    @enable_ki_protection
    def end_waiting(self, other: ChildTask) -> None:
        """Record that this child no longer waits for `other`."""
        if self.waits_for:
            self.waits_for.remove(other)

    @property
    def name(self) -> str:
        """The path from the root to here."""
        return f"{self.owner.name}/{self.id}" if self.owner.name else self.id

    @property
    def state(self) -> str:
        """The state, for people."""
        if self.reason is not None:
            return "stopped"
        if self.stop_reason is not None or self.terminate_scope is not None:
            return "stopping"
        return "running" if self.ready else "starting"

    # Waking and messages.

    @enable_ki_protection
    def wake(self) -> None:
        """Wake the task if it is parked."""
        if self.parked:
            self.parked = False
            assert self.task is not None
            reschedule(self.task)

    @enable_ki_protection
    def receive(self, item: object) -> None:
        """Append `item` to the mailbox; the sender has checked that it fits."""
        assert self.mailbox is not None
        self.mailbox.queue.append(item)
        if self.parked:
            self.parked = False
            assert self.task is not None
            reschedule(self.task)

    def notify(self, news: object) -> None:
        """Queue a system message, which is never refused."""
        if self.reason is None and self.mailbox is not None:
            self.receive(InfoMessage(news))

    def forget_call(self, caller: PendingCall) -> None:
        """Handle that the caller of a call has given up."""
        if self.mailbox is not None:
            self.mailbox.remove_waiter(caller)
        else:
            self.wake()

    @enable_ki_protection
    def abort_pause(self, _raise_cancel: Callable[[], None]) -> Abort:
        """End a pause because of a cancel or a deadline, so that the task is not woken twice."""
        self.parked = False
        return Abort.SUCCEEDED

    @property
    def has_work(self) -> bool:
        """Whether a message or a stop request waits."""
        return self.stop_reason is not None or (
            self.mailbox is not None and bool(self.mailbox.queue)
        )

    def abort_start(self, _raise_cancel: Callable[[], None]) -> Abort:
        """Handle that the task which waits for the start was cancelled."""
        self.starter = None
        self.no_restart = True
        return Abort.SUCCEEDED

    @enable_ki_protection
    def mark_ready(self) -> None:
        """Record that the child is up, and notify the supervisor."""
        self.ready = True
        if self.spec.backoff is not None:
            self.up_since = trio.current_time()
        self.owner.child_ready(self)

    # Stopping.

    @enable_ki_protection
    def request_stop(self, reason: ExitReason, deadline: float = math.inf) -> None:
        """Stop the child with `reason`; `deadline` limits `terminate`. The first reason counts."""
        if self.reason is not None:
            return
        if deadline < self.deadline:
            self.deadline = deadline
        if self.terminate_scope is not None:
            self.terminate_scope.deadline = min(self.terminate_scope.deadline, self.deadline)
        if self.stop_reason is None:
            self.stop_reason = reason
            self._interrupt()

    @enable_ki_protection
    def kill(self) -> None:
        """End the child without `terminate`, also while `terminate` runs."""
        if self.reason is not None:
            return
        self.killed = True
        self.stop_reason = KILLED
        self._interrupt()
        if self.terminate_scope is not None:
            self.terminate_scope.cancel()

    def _interrupt(self) -> None:
        if self.parked:
            self.wake()
        elif self.scope is not None and not self.spec.is_supervisor:
            self.scope.cancel()

    @enable_ki_protection
    async def wait_ended(self) -> ExitReason:
        """Wait for the end and return its reason."""
        if self.reason is None:
            task = trio.lowlevel.current_task()
            if self.waiters is None:
                self.waiters = []
            waiters = self.waiters
            waiters.append(task)

            def give_up(_raise_cancel: Callable[[], None]) -> Abort:
                waiters.remove(task)
                return Abort.SUCCEEDED

            await trio.lowlevel.wait_task_rescheduled(give_up)
        else:
            await trio.lowlevel.checkpoint()
        assert self.reason is not None
        return self.reason

    @enable_ki_protection
    async def stop(self, reason: ExitReason) -> None:
        """Stop the child as its spec says, and wait for the end even if the caller is cancelled."""
        shutdown = self.spec.stop_timeout
        with trio.CancelScope(shield=True):
            if shutdown > 0:
                self.request_stop(reason, trio.current_time() + shutdown)
                with trio.move_on_after(shutdown):
                    await self.wait_ended()
            self.kill()
            await self.wait_ended()

    # The end.

    def link(self, other: ChildTask) -> None:
        """Link the two: the end of one ends the other."""
        for one, two in ((self, other), (other, self)):
            if one.links is None:
                one.links = {}
            one.links[two] = None

    def unlink(self, other: ChildTask) -> None:
        """Remove a link."""
        for one, two in ((self, other), (other, self)):
            if one.links is not None:
                one.links.pop(two, None)

    def handle_linked_exit(self, other: ChildTask, reason: ExitReason) -> None:
        """Handle the end of the linked child `other`: queue an `Exit`, or stop as well."""
        if self.make_exit_message is not None:
            self.notify(self.make_exit_message(other, reason))
        elif not isinstance(reason, Normal):
            self.request_stop(reason)

    @enable_ki_protection
    def finish(self, reason: ExitReason) -> None:
        """Record the end and notify all observers, without a checkpoint."""
        self.reason = reason
        self.parked = False
        # Dropping the task breaks the reference cycle, so that no garbage collection is needed.
        self.task = self.scope = self.actor = None
        if self.names is not None:
            for registry in self.names:
                registry.remove_child(self)
        if self.mailbox is not None:
            self.mailbox.close(self, reason)
        if isinstance(self.current, PendingCall):
            self.current.fail_callee_down(reason)
        self.current = None
        if self.__dict__:
            self._notify_observers(reason)
        self.owner.child_exited(self)

    def _notify_observers(self, reason: ExitReason) -> None:
        # Attributes that few children set are in the instance's dictionary; most have none.
        self.terminate_scope = self.terminate_callback = None
        if self.deferred is not None:
            for caller in list(self.deferred):
                caller.fail_callee_down(reason)
        for other in list(self.links or ()):
            other.unlink(self)
            other.handle_linked_exit(self, reason)
        if self.monitors is not None:
            monitors, self.monitors = self.monitors, None
            for monitor in monitors:
                monitor.notify(reason)
        for monitor in list(self.watching or ()):
            monitor.cancel()
        if self.waiters is not None:
            for waiter in self.waiters:
                reschedule(waiter, Value(None))
            self.waiters = None
