"""The expected failure of a supervisor, and the exception that leaves its block."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, cast

import trio

from sessionmgr.otp import Crashed, Killed, NoProc, RestartIntensityExceeded, StartFailed

if TYPE_CHECKING:
    from sessionmgr.otp import ExitReason
    from tests.otp.supervisor_scripts import Restart, SupervisorOptions


def comes_back(restart: Restart, reason: ExitReason) -> bool:
    """Say whether a child of this restart type is started again after this end."""
    abnormal = isinstance(reason, Crashed | Killed | NoProc)
    return restart == "permanent" or (restart == "transient" and abnormal)


class GaveUpError(Exception):
    """There were too many restarts."""

    def __init__(self, child: str, exits: tuple[ExitReason, ...]) -> None:
        self.child = child
        self.exits = exits

    def resembles(self, error: object) -> bool:
        """Say whether `error` tells of this."""
        last = self.exits[-1]
        cause = last.error if isinstance(last, Crashed) else None
        return (
            isinstance(error, RestartIntensityExceeded)
            and (error.child, error.exits) == (self.child, self.exits)
            and error.__cause__ is cause
        )


class StartError(Exception):
    """A first child did not come up."""

    def __init__(self, child: str, reason: ExitReason) -> None:
        self.child = child
        self.reason = reason

    def resembles(self, error: object) -> bool:
        """Say whether `error` tells of this."""
        cause = self.reason.error if isinstance(self.reason, Crashed) else None
        return (
            isinstance(error, StartFailed)
            and error.child == self.child
            and error.__cause__ is cause
        )


Failure = GaveUpError | StartError


class RestartAccount:
    """The restarts that were charged to one supervisor."""

    def __init__(self, options: SupervisorOptions) -> None:
        self._options = options
        self._times: list[float] = []
        self._exits: deque[ExitReason] = deque(maxlen=options.max_restarts + 1)

    def charge(self, child: str, reason: ExitReason, now: float) -> None:
        """Charge a restart.

        Raises:
            GaveUp: it is one too many.
        """
        self._times.append(now)
        self._exits.append(reason)
        if self.count(now) > self._options.max_restarts:
            raise GaveUpError(child.rpartition("/")[2], tuple(self._exits))

    def count(self, now: float) -> int:
        """Count the restarts in the window that ends now, which is closed at both ends."""
        return sum(now - self._options.max_seconds <= time <= now for time in self._times)


class BlockOutcome:
    """What may leave a block."""

    def __init__(self, failure: Failure | None, body: object, *, cancelled: bool) -> None:
        self._failure = failure
        self._body = body
        self._cancelled = cancelled

    def fits(self, error: object, *, ended_by_itself: bool) -> bool:
        """Say whether `error` may leave the block (None: it ends silently)."""
        body, failure = self._body, self._failure
        cut_short = isinstance(body, trio.Cancelled)
        if failure is None:
            if cut_short and ended_by_itself:
                return error is None or self._cancelled
            return isinstance(error, trio.Cancelled) if cut_short else error is body
        if body is None or cut_short:
            return failure.resembles(error)
        if not isinstance(body, Exception):
            # Callers do not look for Ctrl-C in a group.
            return error is body
        if not isinstance(error, ExceptionGroup):
            return False
        both = cast("ExceptionGroup[Exception]", error).exceptions
        return len(both) == 2 and body in both and any(map(failure.resembles, both))
