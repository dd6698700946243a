"""One log line for each crash, restart and give-up, for people and for machines.

The text is `event key=value …`; the same values are attributes of the record. The crash of
a child carries its traceback.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from sessionmgr.otp.exit_reason import Crashed, cause_of

if TYPE_CHECKING:
    from sessionmgr.otp.child_task import ChildTask
    from sessionmgr.otp.errors import RestartIntensityExceeded
    from sessionmgr.otp.exit_reason import ExitReason

log: Final = logging.getLogger("sessionmgr.otp")


def child_crashed(life: ChildTask, reason: Crashed) -> None:
    """A child ended with an exception."""
    _log(logging.ERROR, "child_crashed", life.owner.name, life.id, reason, reason.error)


def child_restarted(supervisor: str, child: str, reason: ExitReason) -> None:
    """A child is up again, after it, or one that it falls with, had ended for `reason`."""
    _log(logging.WARNING, "child_restarted", supervisor, child, reason)


def start_failed(supervisor: str, child: str, reason: ExitReason) -> None:
    """A child did not come up again."""
    _log(logging.ERROR, "start_failed", supervisor, child, reason, cause_of(reason))


def gave_up(error: RestartIntensityExceeded) -> None:
    """A supervisor has no restarts left."""
    _log(logging.ERROR, "supervisor_gave_up", error.supervisor, error.child, error.exits[-1])


def terminate_failed(life: ChildTask, error: Exception) -> None:
    """A crashed actor's `terminate` failed as well."""
    _log(logging.ERROR, "terminate_failed", life.owner.name, life.id, Crashed(error), error)


def unhandled_info(name: str, message: object) -> None:
    """An actor without `handle_info` was sent something."""
    log.warning(
        "unhandled_info child=%s message=%r", name, message, extra={"event": "unhandled_info"}
    )


def _log(
    level: int,
    event: str,
    supervisor: str,
    child: str,
    reason: ExitReason,
    error: BaseException | None = None,
) -> None:
    if not log.isEnabledFor(level):
        return
    log.log(
        level,
        "%s supervisor=%s child=%s reason=%r",
        event,
        supervisor,
        child,
        str(reason),
        exc_info=error,
        extra={"event": event, "supervisor": supervisor, "child": child, "reason": reason},
    )
