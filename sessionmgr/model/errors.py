"""Errors of values that do not fit together."""

from __future__ import annotations

from sessionmgr.errors import SessionmgrError


class ModelError(SessionmgrError):
    """Values that do not fit together."""


class IllegalTransition(ModelError, ValueError):
    """An event was about to be written that may not follow in the life of a run."""

    def __init__(self, status: str, event_type: str) -> None:
        super().__init__(f"a run that is {status} cannot go on with {event_type}")
        self.status = status
        self.event_type = event_type
