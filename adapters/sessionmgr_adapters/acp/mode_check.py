"""The check that an agent stays in the mode of its run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sessionmgr.model import Failure, FailureKind, PermissionMode
from sessionmgr_adapters.acp.quirks import FREE

if TYPE_CHECKING:
    from sessionmgr_adapters.acp.opening import AcpRunRequest


class ModeCheck:
    """The mode of one run, and what follows from a change of it."""

    def __init__(self, asked: PermissionMode, request: AcpRunRequest) -> None:
        self.wanted: Final = request.options.mode or request.mode.id
        """The agent's mode that was asked for; None if its modes are not known."""
        plan = request.quirks.modes.get(PermissionMode.PLAN)
        self._narrow: Final[set[str | None]] = set() if plan is None else {plan.id}
        """The agent's modes that allow less than any other of ours."""
        self._is_free: Final = asked in FREE
        self._reported: str | None = None

    def start(self, mode: str | None) -> None:
        """Note the mode at the start of the run."""
        self._reported = mode

    def describe(self, effective: str) -> str:
        """Return the name of the effective mode, with what an unknown agent reports."""
        is_own = self.wanted is None and self._reported is not None
        return f"{effective} ({self._reported})" if is_own else effective

    def violation_of(self, mode: str | None) -> Failure | None:
        """Return the failure of an agent that reports another mode than was asked for."""
        if self.wanted in (None, mode) or self._is_free or mode in self._narrow:
            return None
        return _failure(f"the agent has changed its mode from {self.wanted!r} to {mode!r}")

    def change_to(self, mode: str | None) -> Failure | None:
        """Return a warning about the change of an agent whose modes are not known."""
        before, self._reported = self._reported, mode
        if self.wanted is not None or before in (None, mode):
            return None
        return _failure(
            f"the agent has changed its mode from {before!r} to {mode!r}; it may allow more"
        )


def _failure(message: str) -> Failure:
    return Failure(kind=FailureKind.PERMISSION_REFUSED, message=message, phase="turn")
