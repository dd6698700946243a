"""Entries of a supervisor's child list, and the items of its inbox other than exits."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sessionmgr.otp.actor import Actor
    from sessionmgr.otp.child_spec import ChildSpec
    from sessionmgr.otp.child_task import ChildTask
    from sessionmgr.otp.exit_reason import ExitReason
    from sessionmgr.otp.ref import Caller


class ChildEntry:
    """A child's place among its siblings; it outlives the child's incarnations."""

    __slots__ = (
        "id",
        "quick_restarts",
        "record",
        "restarting",
        "restarts",
        "restarts_with",
        "spec",
    )

    def __init__(self, spec: ChildSpec[Actor], id: str) -> None:
        self.spec = spec
        self.id = id
        self.record: ChildTask | None = None
        # Whether its own restart is due; the entry whose group restart includes it.
        self.restarting = False
        self.restarts_with: ChildEntry | None = None
        self.restarts = 0
        # Number of restarts in a row that followed each other closely; determines the back-off.
        self.quick_restarts = 0

    @property
    def state(self) -> str:
        """The state, for people."""
        if self.record is not None:
            return self.record.state
        return "restarting" if self._is_due else "stopped"

    @property
    def _is_due(self) -> bool:
        return self.restarting or (self.restarts_with is not None and self.restarts_with.restarting)

    @property
    def is_stopped(self) -> bool:
        """Whether the child neither runs nor will be restarted; its exit was handled."""
        return self.record is None and not self._is_due


class SupervisorRequest:
    """A request to the supervisor, handled in its turn."""

    __slots__ = ("do", "name")

    def __init__(self, name: str, do: Callable[[Caller], Awaitable[None]]) -> None:
        self.name = name
        self.do = do

    def __repr__(self) -> str:
        return f"{self.name}()"


class StartRetry:
    """A failed start that will be retried in its turn."""

    __slots__ = ("entry", "reason")

    def __init__(self, entry: ChildEntry, reason: ExitReason) -> None:
        self.entry = entry
        self.reason = reason
