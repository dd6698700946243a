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
        life = self._start_child(spec, spec.id or self._new_id(spec.label))
        life.starter = current_task()
        asker = current_child()
        if asker is not None:
            # So that a call of the new child to the task that starts it is seen as a cycle.
            asker.begin_waiting(life)
        try:
            await wait_task_rescheduled(life.abort_start)
        except BaseException:
            # Cancelled; or Ctrl-C, perhaps just after the child came up.
            life.starter = None
            life.no_restart = True
            await life.stop(SHUTDOWN)  # noqa: ASYNC102  # shielded, and bounded by `shutdown`
            raise
        finally:
            if asker is not None:
                asker.end_waiting(life)
        if not life.ready:
            assert life.reason is not None
            if me.stop_reason is not None:
                raise SupervisorStopping(me.name)
            error = StartFailed(me.name, life.id, life.reason)
            raise error from cause_of(life.reason)
        return cast("Ref[A]", ref_of(life))

    @enable_ki_protection
    async def terminate_child(self, child: str | Ref[Actor]) -> None:
        """Stop a child and forget it.

        Args:
            child: The id of the child, or a reference to it.

        Raises:
            UnknownChild: There is no such child.
        """
        self._require_running()
        life = self._children.get(child) if isinstance(child, str) else child.child_task()
        if life is None or self._children.get(life.id) is not life:
            raise UnknownChild(self.name, child)
        if life.reason is None:
            self._stop_child(life)
        else:
            # Its pending restart is dropped.
            self._forget_child(life)
        await life.wait_ended()

    def _stop_child(self, life: ChildTask) -> None:
        # A task of the supervisor stops it, because the calling task may be the child itself.
        assert self._nursery is not None
        life.no_restart = True
        self._context.run(self._nursery.start_soon, life.stop, SHUTDOWN)

    def _forget_child(self, life: ChildTask) -> None:
        self._due.pop(life, None)
        self._strikes.pop(life.id, None)
        self._remove_child(life)

    def child_ready(self, life: ChildTask) -> None:
        """Handle that a child is up.

        Args:
            life: The record of the child.
        """
        starter = life.starter
        if starter is not None:
            life.starter = None
            reschedule(starter)
        elif life in self._returning:
            self._restarts += 1
            report.child_restarted(self.name, life.id, self._returning.pop(life))

    def child_exited(self, life: ChildTask) -> None:
        """Handle that a child has ended.

        Args:
            life: The record of the child.
        """
        reason = life.reason
        assert reason is not None
        starter, life.starter = life.starter, None
        failed_again = self._returning.pop(life, None) is not None
        if failed_again:
            report.start_failed(self.name, life.id, reason)
        elif life.ready and isinstance(reason, Crashed):
            report.child_crashed(life, reason)
        if starter is not None:
            self._forget_child(life)
            reschedule(starter)
        elif life.interrupted:
            self._forget_child(life)
            self._begin_interrupted_stop()
        elif (
            self._closing
            or life.no_restart
            or not (failed_again or wants_restart(life.spec.restart, reason))
        ):
            self._forget_child(life)
        else:
            self._inbox.append(life)
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
            for life in [life for life, due in self._due.items() if due <= now]:
                del self._due[life]
                self._start_again(life)
            if self._inbox:
                life = cast("ChildTask", self._inbox.popleft())
                if self._children.get(life.id) is life:
                    self._restart(life)
            else:
                await self._pause(min(self._due.values(), default=math.inf))

    def _restart(self, life: ChildTask) -> None:
        """Count a restart, and make it: now, or after the back-off."""
        now = trio.current_time()
        reason = life.reason
        assert reason is not None
        self._exits.append(reason)
        if not self._intensity.record(now):
            error = RestartIntensityExceeded(self.name, life.id, list(self._exits), *self._limits)
            report.gave_up(error)
            raise error from cause_of(reason)
        backoff = life.spec.backoff
        if backoff is None:
            self._start_again(life)
            return
        strike = 0 if life.has_been_up_for(backoff.maximum) else self._strikes.get(life.id, 0)
        self._strikes[life.id] = strike + 1
        self._due[life] = now + backoff.delay(strike, random.random())

    def _start_again(self, dead: ChildTask) -> None:
        assert dead.reason is not None
        life = ChildTask(dead.spec, dead.id, self, dead.restarts + 1)
        self._children[life.id] = life
        self._returning[life] = dead.reason
        self._start_in_context(life)

    def _reject(self, item: object) -> None:
        """Drop an exit: there are no more restarts."""

    def _restarts_in_window(self) -> int:
        return self._intensity.count(trio.current_time())
