"""An approval request of a provider that waits for its decision."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from sessionmgr.adapter import ApprovalRequest, Decision


class PendingApproval:
    """An approval request that waits for its decision."""

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
        """The decision of the permission mode, if the mode decides."""
        self.timeout = timeout
        """Seconds that an approver has to decide; None without an approver or a limit."""
        self.answered = trio.Event()
        self.decision: Decision | None = None
        self.scope = trio.CancelScope()
        """The scope of the task that finds the decision."""
