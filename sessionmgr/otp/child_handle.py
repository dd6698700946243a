"""Handle of a child: its state, its end, and how to stop it; `Ref` adds messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from sessionmgr.otp.errors import ActorDown
from sessionmgr.otp.exit_reason import NOPROC, NORMAL, ExitReason, PlainReason, as_reason
from sessionmgr.otp.statistics import ActorStatistics

if TYPE_CHECKING:
    from sessionmgr.otp.child_task import ChildTask


class ChildHandle:
    """Handle of one incarnation of a child: the part of `Ref` that sends no messages."""

    __slots__ = ("_record",)

    def __init__(self, record: ChildTask) -> None:
        self._record: ChildTask | None = record

    def __repr__(self) -> str:
        record = self._require_child_task()
        return f"<Ref {record.name}: {record.state}>"

    def child_task(self) -> ChildTask | None:
        """Return the library's own record of the child."""
        return self._record

    def _require_child_task(self) -> ChildTask:
        record = self.child_task()
        if record is None:
            raise ActorDown(repr(self), NOPROC)
        return record

    @property
    def alive(self) -> bool:
        """Whether this incarnation has not ended yet."""
        record = self.child_task()
        return record is not None and record.reason is None

    @property
    def id(self) -> str:
        """The child's id, as its supervisor knows it."""
        return self._require_child_task().id

    @property
    def name(self) -> str:
        """The path of ids from the root supervisor to this child."""
        return self._require_child_task().name

    @property
    def started_value(self) -> object:
        """The value that a function child passed to `task_status.started`."""
        return self._require_child_task().value

    async def wait(self) -> ExitReason:
        """Wait for the end and return its reason; return at once if it has ended."""
        record = self.child_task()
        if record is None:
            await trio.lowlevel.checkpoint()
            return NOPROC
        return await record.wait_ended()

    def stop(self, reason: ExitReason | PlainReason = NORMAL) -> None:
        """Stop the child with `reason`, after its `terminate`. Queued messages are lost.

        Its supervisor then reacts as to any exit with this reason: a permanent child is restarted.
        `Supervisor.terminate_child` stops it for good.

        Args:
            reason: The reason that the child ends with; by default `Normal`.
        """
        record = self.child_task()
        if record is not None:
            record.request_stop(as_reason(reason))

    def kill(self) -> None:
        """End the child without its `terminate`, at its next checkpoint; it cannot trap this."""
        record = self.child_task()
        if record is not None:
            record.kill()

    def statistics(self) -> ActorStatistics:
        """Return the present state, age, mailbox and restarts of this child."""
        return ActorStatistics.of(self._require_child_task())
