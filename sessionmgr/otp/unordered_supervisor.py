"""Base class of supervisors of many independent children: no order, stopped at the same time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import trio
from trio.lowlevel import enable_ki_protection

from sessionmgr.otp.base_supervisor import BaseSupervisor
from sessionmgr.otp.child_rows import ChildRow
from sessionmgr.otp.child_task import ChildTask
from sessionmgr.otp.errors import MaxChildren
from sessionmgr.otp.exit_reason import SHUTDOWN
from sessionmgr.otp.ref import ref_of

if TYPE_CHECKING:
    from sessionmgr.otp.actor import Actor
    from sessionmgr.otp.child_spec import ChildSpec


class UnorderedSupervisor(BaseSupervisor):
    """Base class with the children by id, their number and their common stop."""

    def __init__(self, name: str | None, max_children: int | None) -> None:
        super().__init__(name)
        if max_children is not None and max_children < 1:
            raise ValueError(
                f"max_children={max_children}: must be at least 1, or None for no limit"
            )
        self._max_children = max_children
        self._children: dict[str, ChildTask] = {}
        self._born = 0
        self._closing = False

    def _new_id(self, label: str) -> str:
        while True:
            self._born += 1
            candidate = f"{label}-{self._born}"
            if candidate not in self._children:
                return candidate

    @enable_ki_protection
    def _start_child(self, spec: ChildSpec[Actor], id: str) -> ChildTask:
        """Start a child, which reports itself when it is up.

        Raises:
            MaxChildren: The supervisor already has `max_children` children.
        """
        if self._max_children is not None and len(self._children) >= self._max_children:
            raise MaxChildren(self.name, self._max_children)
        record = self._children[id] = ChildTask(spec, id, self)
        self._start_in_context(record)
        return record

    async def _start_children(self) -> None:
        self._children.clear()
        self._closing = False

    def _live_children(self) -> list[ChildTask]:
        return list(self._children.values())

    async def _stop_children(self) -> None:
        """Stop all children at the same time, each within its own `shutdown` time."""
        me = self._running_task
        self._closing = True
        for record in self._live_children():
            if record.reason is not None:
                # A child whose restart was pending.
                del self._children[record.id]
        now = trio.current_time()
        deadlines: dict[ChildTask, float] = {}
        for record in self._live_children():
            if me.killed or record.spec.stop_timeout <= 0:
                record.kill()
                continue
            deadlines[record] = now + record.spec.stop_timeout
            record.request_stop(SHUTDOWN, deadlines[record])
        while self._children:
            now = trio.current_time()
            for record in [
                record for record, when in deadlines.items() if me.killed or when <= now
            ]:
                del deadlines[record]
                record.kill()
            await self._pause(min(deadlines.values(), default=math.inf))

    def _remove_child(self, record: ChildTask) -> None:
        """Forget a child, and wake a stop that waits for the last one."""
        del self._children[record.id]
        if self._closing and not self._children:
            self._wake()

    def which_children(self) -> list[ChildRow]:
        """List the children, oldest first."""
        self._require_started()
        return [
            ChildRow(
                id=record.id,
                ref=ref_of(record) if record.reason is None else None,
                kind=record.spec.role,
                state=record.state if record.reason is None else "restarting",
                restarts=record.restarts,
            )
            for record in self._children.values()
        ]

    def _find_child(self, id: str) -> ChildTask | None:
        return self._children.get(id)
