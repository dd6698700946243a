"""A provider's approval request that waits for its decision."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from sessionmgr.adapter import ApprovalRequest, Decision


class PendingApproval:
    """A provider's question that waits for its answer."""

    __slots__ = ("answered", "decision", "request", "ruled", "scope", "timeout")

    def __init__(
        self,
        request: ApprovalRequest,
        ruled: Decision | None = None,
        *,
        timeout: float | None = None,
    ) -> None:
        self.request = request
        self.ruled = ruled
        """The answer of the permission mode, if it has one."""
        self.timeout = timeout
        """Seconds that an approver has for its answer; None if there is none, or no limit."""
        self.answered = trio.Event()
        self.decision: Decision | None = None
        self.scope = trio.CancelScope()
        """The scope of the task that finds the answer."""
