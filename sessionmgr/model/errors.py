"""Errors of the model: an event that the status of its run does not allow."""

from __future__ import annotations

from sessionmgr.errors import SessionmgrError


class ModelError(SessionmgrError):
    """Base class of errors of the model."""


class IllegalTransition(ModelError, ValueError):
    """An event may not follow in the present status of the run."""

    def __init__(self, status: str, event_type: str) -> None:
        super().__init__(f"the event {event_type} may not follow in a run that is {status}")
        self.status = status
        self.event_type = event_type
