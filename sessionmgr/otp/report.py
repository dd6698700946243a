"""Log records of crashes, restarts and give-ups, for people and for machines.

The text is a sentence with key=value fields; the values are also attributes of the record, and
`event` identifies its kind. The record of a crash carries the traceback.
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


def child_crashed(record: ChildTask, reason: Crashed) -> None:
    """Log that a child ended with an exception."""
    _log(
        logging.ERROR,
        "child_crashed",
        "A child crashed.",
        record.owner.name,
        record.id,
        reason,
        reason.error,
    )


def child_restarted(supervisor: str, child: str, reason: ExitReason) -> None:
    """Log that a child was restarted after the exit of itself or of a child of its group."""
    _log(logging.WARNING, "child_restarted", "A child was restarted.", supervisor, child, reason)


def start_failed(supervisor: str, child: str, reason: ExitReason) -> None:
    """Log that the restart of a child failed."""
    _log(
        logging.ERROR,
        "start_failed",
        "A child could not be restarted.",
        supervisor,
        child,
        reason,
        cause_of(reason),
    )


def gave_up(error: RestartIntensityExceeded) -> None:
    """Log that a supervisor has exceeded its restart limit."""
    _log(
        logging.ERROR,
        "supervisor_gave_up",
        "A supervisor gave up.",
        error.supervisor,
        error.child,
        error.exits[-1],
    )


def terminate_failed(record: ChildTask, error: Exception) -> None:
    """Log that the `terminate` of a crashed actor failed as well."""
    _log(
        logging.ERROR,
        "terminate_failed",
        "The terminate of a crashed actor failed.",
        record.owner.name,
        record.id,
        Crashed(error),
        error,
    )


def unhandled_info(name: str, message: object) -> None:
    """Log that an actor without `handle_info` received such a message."""
    log.warning(
        "An actor has no handle_info for this message. child=%s message=%r",
        name,
        message,
        extra={"event": "unhandled_info"},
    )


def _log(
    level: int,
    event: str,
    sentence: str,
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
        sentence,
        supervisor,
        child,
        str(reason),
        exc_info=error,
        extra={"event": event, "supervisor": supervisor, "child": child, "reason": reason},
    )
