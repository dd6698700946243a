"""Dynamic supervisor: children are added and removed at run time.

| in OTP | here |
|---|---|
| `DynamicSupervisor.start_child/2` | `await sup.start_child(child(...))` |
| `{:error, :max_children}` | `MaxChildren` |
| children are stopped in parallel | likewise |

Unlike OTP's it starts children concurrently: a slow start does not delay the others. A start still
runs in the supervisor's nursery and context; only the waiting happens in the caller.
"""

from __future__ import annotations

import math
import random
from collections import deque
from typing import TYPE_CHECKING, TypeVar, cast

import trio
from trio.lowlevel import (
    checkpoint_if_cancelled,
    current_task,
    enable_ki_protection,
    reschedule,
    wait_task_rescheduled,
)

from sessionmgr.otp import report
from sessionmgr.otp.child_builder import as_spec
from sessionmgr.otp.child_spec import ChildSpec
from sessionmgr.otp.child_task import ChildTask
from sessionmgr.otp.context import current_child
from sessionmgr.otp.errors import (
    DuplicateChild,
    RestartIntensityExceeded,
    StartFailed,
    SupervisorStopping,
    UnknownChild,
)
from sessionmgr.otp.exit_reason import SHUTDOWN, Crashed, ExitReason, cause_of
from sessionmgr.otp.ref import ref_of
from sessionmgr.otp.restart_intensity import RestartWindow, check_limits
from sessionmgr.otp.restart_policy import wants_restart
from sessionmgr.otp.unordered_supervisor import UnorderedSupervisor

if TYPE_CHECKING:
    from collections.abc import Callable

    from sessionmgr.otp.actor import Actor
    from sessionmgr.otp.base_supervisor import BaseSupervisor
    from sessionmgr.otp.ref import Ref

A = TypeVar("A", bound="Actor")


class DynamicSupervisor(UnorderedSupervisor):
    """Supervisor of any number of independent children.

    Each child is restarted by its own policy, with its original arguments; `max_restarts` in
    `max_seconds` counts for all together, so make children `temporary` where many may fail.
    They are stopped at the same time, each within its own `shutdown` time. More than
    `max_children` children are refused.
    """

    def __init__(
        self,
        *,
        name: str | None = None,
        max_children: int | None = None,
        max_restarts: int = 3,
        max_seconds: float = 5.0,
    ) -> None:
        super().__init__(name, max_children)
        self._limits = check_limits(max_restarts, max_seconds)
        self._intensity = RestartWindow(*self._limits)
        self._exits: deque[ExitReason] = deque(maxlen=max_restarts + 1)
        # Exit reasons of the children whose restart is pending.
        self._returning: dict[ChildTask, ExitReason] = {}
        self._strikes: dict[str, int] = {}
        self._due: dict[ChildTask, float] = {}

    @enable_ki_protection
    async def start_child(
        self, what: ChildSpec[A] | Callable[..., object] | BaseSupervisor
    ) -> Ref[A]:
        """Add a child and wait until it is up.

        If the caller is cancelled meanwhile, the child is stopped and forgotten.

        Args:
            what: The child, as `child` describes it, or a class of actors, an async function or a
                supervisor.

        Raises:
            StartFailed: It did not start, and is not kept.
            MaxChildren: The supervisor already has `max_children` children.
            DuplicateChild: The given id is taken.
        """
        await checkpoint_if_cancelled()
        me = self._require_running()
        # The test for the exact class comes first: it is the usual case, and makes starts faster.
        spec = cast("ChildSpec[Actor]", what) if what.__class__ is ChildSpec else as_spec(what)
        if spec.id is not None and spec.id in self._children:
            raise DuplicateChild(self.name, spec.id)
        record = self._start_child(spec, spec.id or self._new_id(spec.label))
        record.starter = current_task()
        asker = current_child()
        if asker is not None:
            # So that a call of the new child to the task that starts it is seen as a cycle.
            asker.begin_waiting(record)
        try:
            await wait_task_rescheduled(record.abort_start)
        except BaseException:
            # Cancelled; or Ctrl-C, perhaps just after the child came up.
            record.starter = None
            record.no_restart = True
            await record.stop(SHUTDOWN)  # noqa: ASYNC102  # shielded, and bounded by `shutdown`
            raise
        finally:
            if asker is not None:
                asker.end_waiting(record)
        if not record.ready:
            assert record.reason is not None
            if me.stop_reason is not None:
                raise SupervisorStopping(me.name)
            error = StartFailed(me.name, record.id, record.reason)
            raise error from cause_of(record.reason)
        return cast("Ref[A]", ref_of(record))

    @enable_ki_protection
    async def terminate_child(self, child: str | Ref[Actor]) -> None:
        """Stop a child and forget it.

        Args:
            child: The id of the child, or a reference to it.

        Raises:
            UnknownChild: There is no such child.
        """
        self._require_running()
        record = self._children.get(child) if isinstance(child, str) else child.child_task()
        if record is None or self._children.get(record.id) is not record:
            raise UnknownChild(self.name, child)
        if record.reason is None:
            self._stop_child(record)
        else:
            # Its pending restart is dropped.
            self._forget_child(record)
        await record.wait_ended()

    def _stop_child(self, record: ChildTask) -> None:
        # A task of the supervisor stops it, because the calling task may be the child itself.
        assert self._nursery is not None
        record.no_restart = True
        self._context.run(self._nursery.start_soon, record.stop, SHUTDOWN)

    def _forget_child(self, record: ChildTask) -> None:
        self._due.pop(record, None)
        self._strikes.pop(record.id, None)
        self._remove_child(record)

    def child_ready(self, record: ChildTask) -> None:
        """Handle that a child is up.

        Args:
            record: The record of the child.
        """
        starter = record.starter
        if starter is not None:
            record.starter = None
            reschedule(starter)
        elif record in self._returning:
            self._restarts += 1
            report.child_restarted(self.name, record.id, self._returning.pop(record))

    def child_exited(self, record: ChildTask) -> None:
        """Handle that a child has ended.

        Args:
            record: The record of the child.
        """
        reason = record.reason
        assert reason is not None
        starter, record.starter = record.starter, None
        failed_again = self._returning.pop(record, None) is not None
        if failed_again:
            report.start_failed(self.name, record.id, reason)
        elif record.ready and isinstance(reason, Crashed):
            report.child_crashed(record, reason)
        if starter is not None:
            self._forget_child(record)
            reschedule(starter)
        elif record.interrupted:
            self._forget_child(record)
            self._begin_interrupted_stop()
        elif (
            self._closing
            or record.no_restart
            or not (failed_again or wants_restart(record.spec.restart, reason))
        ):
            self._forget_child(record)
        else:
            self._inbox.append(record)
            self._wake()

    async def _start_children(self) -> None:
        await super()._start_children()
        self._intensity = RestartWindow(*self._limits)
        self._exits.clear()
        self._returning.clear()
        self._strikes.clear()
        self._due.clear()

    async def _supervise(self) -> None:
        while self._running_task.stop_reason is None:
            now = trio.current_time()
            for record in [record for record, due in self._due.items() if due <= now]:
                del self._due[record]
                self._start_again(record)
            if self._inbox:
                record = cast("ChildTask", self._inbox.popleft())
                if self._children.get(record.id) is record:
                    self._restart(record)
            else:
                await self._pause(min(self._due.values(), default=math.inf))

    def _restart(self, record: ChildTask) -> None:
        """Count a restart, and make it: now, or after the back-off."""
        now = trio.current_time()
        reason = record.reason
        assert reason is not None
        self._exits.append(reason)
        if not self._intensity.record(now):
            error = RestartIntensityExceeded(self.name, record.id, list(self._exits), *self._limits)
            report.gave_up(error)
            raise error from cause_of(reason)
        backoff = record.spec.backoff
        if backoff is None:
            self._start_again(record)
            return
        strike = 0 if record.has_been_up_for(backoff.maximum) else self._strikes.get(record.id, 0)
        self._strikes[record.id] = strike + 1
        self._due[record] = now + backoff.delay(strike, random.random())

    def _start_again(self, dead: ChildTask) -> None:
        assert dead.reason is not None
        record = ChildTask(dead.spec, dead.id, self, dead.restarts + 1)
        self._children[record.id] = record
        self._returning[record] = dead.reason
        self._start_in_context(record)

    def _reject(self, item: object) -> None:
        """Drop an exit: there are no more restarts."""

    def _restarts_in_window(self) -> int:
        return self._intensity.count(trio.current_time())
