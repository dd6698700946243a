"""Base supervisor: an `async with` block, or a child of another supervisor.

The strategy: in both cases one task (`run`) holds the nursery of the children and only waits to be
woken. As a block, that task and the user's body are siblings in an outer nursery:

- An outer cancel ends the body first; the children serve it until it has ended, and are stopped
  only then. The cancel cannot reach the children directly.
- Giving up and auto_shutdown stop the children and then cancel the body. Giving up raises one bare
  exception from the block; only if the body fails as well do both leave, as a group.
"""

from __future__ import annotations

import contextvars
import math
from abc import ABC, abstractmethod
from collections import deque
from typing import TYPE_CHECKING, Self, TypeVar, overload

import trio
from trio.lowlevel import enable_ki_protection, wait_task_rescheduled

from sessionmgr.otp import report
from sessionmgr.otp.call_deadlines import DeadlineTable
from sessionmgr.otp.child_rows import ChildCounts
from sessionmgr.otp.child_task import ChildTask
from sessionmgr.otp.context import CURRENT_CHILD
from sessionmgr.otp.crash_boundary import run_child
from sessionmgr.otp.errors import (
    OtpError,
    RestartIntensityExceeded,
    StartFailed,
    SupervisorNotRunning,
    SupervisorStopping,
    UnknownChild,
)
from sessionmgr.otp.exit_reason import SHUTDOWN, Crashed
from sessionmgr.otp.ref import ref_of
from sessionmgr.otp.root_nursery import RootNursery, unwrap_group
from sessionmgr.otp.statistics import SupervisorStatistics
from sessionmgr.otp.tree_drawing import TreeNode, draw_tree, leaf_text, supervisor_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from sessionmgr.otp.actor import Actor
    from sessionmgr.otp.child_rows import ChildRow
    from sessionmgr.otp.ref import Ref

A = TypeVar("A", bound="Actor")


class BaseSupervisor(ABC):
    """Base class of supervisors: the nursery, the block and the introspection."""

    def __init__(self, name: str | None) -> None:
        self.given_name = name
        self._record: ChildTask | None = None
        self._nursery: trio.Nursery | None = None
        self._context = contextvars.copy_context()
        # Exits, requests and due restarts, in order of arrival.
        self._inbox: deque[object] = deque()
        self._restarts = 0
        self._root: RootNursery | None = None
        self._deadlines: DeadlineTable | None = None

    def __repr__(self) -> str:
        state = "not running" if self._record is None else self._record.state
        return f"<{type(self).__name__} {self.name}: {state}>"

    @property
    def name(self) -> str:
        """The path from the root supervisor to this one; before it runs, its own name."""
        if self._record is not None:
            return self._record.name
        return self.given_name or _snake_case(type(self).__name__)

    @property
    def deadlines(self) -> DeadlineTable:
        """The deadlines of calls into this tree."""
        assert self._deadlines is not None
        return self._deadlines

    # Use as a block.

    @enable_ki_protection
    async def __aenter__(self) -> Self:
        self._check_unused()
        self._root = RootNursery(self.name, self.run, self)
        await self._root.enter()
        return self

    @enable_ki_protection
    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        assert self._root is not None
        # `close` is shielded, and bounded by the `shutdown` times.
        return await self._root.close(error)  # noqa: ASYNC102

    # Use as a child.

    async def run(self, record: ChildTask) -> None:
        """Start the children, supervise them, and stop them.

        Args:
            record: The record of the child.
        """
        self._check_unused()
        self._record = record
        self._deadlines = record.owner.deadlines
        # Children get the context of their supervisor, not of the task that starts them.
        self._context = contextvars.copy_context()
        self._context.run(CURRENT_CHILD.set, None)
        self._inbox.clear()
        self._restarts = 0
        failure: OtpError | None = None
        try:
            async with trio.open_nursery() as self._nursery:
                try:
                    await self._start_children()
                    if record.stop_reason is None:
                        record.mark_ready()
                        await self._supervise()
                except (StartFailed, RestartIntensityExceeded) as error:
                    failure = error
                finally:
                    # For any kind of end: from now on no child may be added.
                    record.stop_reason = record.stop_reason or SHUTDOWN
                    with trio.CancelScope(shield=True):
                        await self._stop_all()
        except BaseExceptionGroup as group:
            # Children raise only KeyboardInterrupt and other non-`Exception`s.
            raise unwrap_group(group) from None
        finally:
            self._reject_queued()
            self._record = self._nursery = None
        if failure is not None:
            raise failure

    @enable_ki_protection
    async def _stop_all(self) -> None:
        try:
            await self._stop_children()
        finally:
            # If that was interrupted, kill the remaining children: the nursery would otherwise
            # wait for them without end.
            for record in self._live_children():
                record.kill()
            self._reject_queued()

    def _reject_queued(self) -> None:
        for item in self._inbox:
            self._reject(item)
        self._inbox.clear()

    @abstractmethod
    def _reject(self, item: object) -> None:
        """Reject an inbox item that came too late."""

    @abstractmethod
    async def _start_children(self) -> None: ...

    @abstractmethod
    async def _supervise(self) -> None: ...

    @abstractmethod
    async def _stop_children(self) -> None: ...

    @abstractmethod
    def _live_children(self) -> Sequence[ChildTask]:
        """The children that have not ended, in start order."""

    # Notifications from children.

    def child_ready(self, record: ChildTask) -> None:
        """Handle that a child is up.

        Args:
            record: The record of the child.
        """
        self._wake()

    def child_exited(self, record: ChildTask) -> None:
        """Handle that a child has ended.

        Args:
            record: The record of the child.
        """
        if isinstance(record.reason, Crashed) and record.ready:
            report.child_crashed(record, record.reason)
        if record.interrupted:
            self._begin_interrupted_stop()
        else:
            self._inbox.append(record)
            self._wake()

    # Methods for subclasses.

    @property
    def _running_task(self) -> ChildTask:
        assert self._record is not None
        return self._record

    def _begin_interrupted_stop(self) -> None:
        """Begin to stop: a child is about to raise KeyboardInterrupt or the like."""
        self._running_task.stop_reason = self._running_task.stop_reason or SHUTDOWN
        self._wake()

    @enable_ki_protection
    def _wake(self) -> None:
        if self._record is not None:
            self._record.wake()

    @enable_ki_protection
    async def _pause(self, until: float = math.inf) -> None:
        """Wait until woken, or until a time."""
        assert self._record is not None
        self._record.parked = True
        if until == math.inf:
            await wait_task_rescheduled(self._record.abort_pause)
        else:
            with trio.move_on_at(until):
                await wait_task_rescheduled(self._record.abort_pause)

    @enable_ki_protection
    def _start_in_context(self, record: ChildTask) -> None:
        self._context.run(self._start_task, record)

    @enable_ki_protection
    def _start_task(self, record: ChildTask) -> None:
        assert self._nursery is not None
        self._nursery.start_soon(run_child, record, name=record.id)

    def _require_started(self) -> ChildTask:
        """Return the record of this supervisor.

        Raises:
            SupervisorNotRunning: Its block has not begun, or has ended.
        """
        if self._record is None:
            raise SupervisorNotRunning(self.name)
        return self._record

    def _require_running(self) -> ChildTask:
        """Return the record of this supervisor while it accepts requests.

        Raises:
            SupervisorNotRunning: Its block has not begun, or has ended.
            SupervisorStopping: Its block ends.
        """
        record = self._record
        if record is None or record.stop_reason is not None:
            self._require_started()
            raise SupervisorStopping(self.name)
        return record

    def _check_unused(self) -> None:
        if self._record is not None:
            raise RuntimeError(f"supervisor {self.name!r} is already running: use a new object")

    # Introspection.

    @abstractmethod
    def which_children(self) -> list[ChildRow]:
        """List the children, in start order."""

    def count_children(self) -> ChildCounts:
        """Count the children: all, running, and by kind."""
        rows = self.which_children()
        supervisors = sum(row.kind == "supervisor" for row in rows)
        return ChildCounts(
            specs=len(rows),
            active=sum(row.ref is not None for row in rows),
            supervisors=supervisors,
            workers=len(rows) - supervisors,
        )

    def statistics(self) -> SupervisorStatistics:
        """Return the present state and counters of this supervisor."""
        record = self._require_started()
        counts = self.count_children()
        return SupervisorStatistics(
            name=self.name,
            state=record.state,
            age=trio.current_time() - record.born,
            children=counts.specs,
            active=counts.active,
            restarts=self._restarts,
            restarts_in_window=self._restarts_in_window(),
        )

    @abstractmethod
    def _restarts_in_window(self) -> int: ...

    @abstractmethod
    def _find_child(self, id: str) -> ChildTask | None:
        """Return the running child with that id."""

    @overload
    def ref(self, id: str) -> Ref[Actor]: ...
    @overload
    def ref(self, id: str, actor: type[A]) -> Ref[A]: ...
    def ref(self, id: str, actor: type[A] | None = None) -> Ref[A] | Ref[Actor]:
        """Return the reference to the present incarnation of the child `id`.

        Args:
            id: The id of the child.
            actor: The class of the child, for type checkers.

        Raises:
            UnknownChild: There is no such child, or it is not running.
            TypeError: The child is not an `actor`.
        """
        self._require_running()
        record = self._find_child(id)
        if record is None:
            raise UnknownChild(self.name, id)
        own = record.spec.actor
        if actor is not None and (own is None or not issubclass(own, actor)):
            raise TypeError(f"{record.name} is {record.spec.label}, not {actor.__name__}")
        return ref_of(record)

    def tree(self, *, limit: int = 50) -> str:
        """Return a drawing of this supervisor and its descendants, for `print`.

        It shows the first `limit` children of each supervisor and the number of the others.

        Args:
            limit: The maximum number of children to draw of each supervisor, by default 50.
        """
        return draw_tree(self.tree_node(limit))

    def tree_node(self, limit: int) -> TreeNode:
        """Return the node to draw for this supervisor, also if it has just ended.

        Args:
            limit: The maximum number of children to draw.
        """
        if self._record is None:
            return TreeNode(text=f"{self.name} ({type(self).__name__})  not running", branches=[])
        rows = self.which_children()
        branches: list[TreeNode] = []
        for row in rows[:limit]:
            record = None if row.ref is None else row.ref.child_task()
            below = None if record is None else record.spec.supervisor
            if isinstance(below, BaseSupervisor):
                branches.append(below.tree_node(limit))
            else:
                branches.append(TreeNode(text=leaf_text(row), branches=[]))
        if len(rows) > limit:
            branches.append(TreeNode(text=f"… and {len(rows) - limit} more", branches=[]))
        return TreeNode(
            text=supervisor_text(type(self).__name__, self.statistics()), branches=branches
        )


def _snake_case(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")
