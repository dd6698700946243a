"""What a run is that is refused before anything is started for it: its wishes cannot be had."""

from __future__ import annotations

from sessionmgr.model import Failure, FailureKind


def config_invalid(message: str) -> Failure:
    """Return the failure that a wrong wish or configuration is; the message names it."""
    return Failure(kind=FailureKind.CONFIG_INVALID, message=message, phase="start")
