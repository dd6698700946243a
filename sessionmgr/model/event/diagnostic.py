"""Diagnostic events: failures and oddities that do not end a run."""

from __future__ import annotations

from typing import ClassVar, Literal

from sessionmgr.model.event.envelope import Event
from sessionmgr.model.failure import Failure
from sessionmgr.model.json_codec import Json


class StallSuspected(Event, frozen=True, kw_only=True):
    """The run has been silent for long, in a state in which that is unusual."""

    type: ClassVar[Literal["stall_suspected"]]
    state: str
    """The timeout in force, such as `model` or `idle`."""
    silent_for: float
    """Seconds of silence."""
    evidence: Json = None
    """State of the process, if known."""


class PolicyViolation(Event, frozen=True, kw_only=True):
    """The agent exceeded its permissions, or broke a rule of the manager."""

    type: ClassVar[Literal["policy_violation"]]
    rule: str
    """The rule."""
    detail: str | None = None
    """What happened."""


class ErrorOccurred(Event, frozen=True, kw_only=True):
    """A failure that does not end the run."""

    type: ClassVar[Literal["error_occurred"]]
    failure: Failure
    """The failure."""
    severity: Literal["warning", "error"] = "error"
    """Severity of the failure."""


class OutputReceived(Event, frozen=True, kw_only=True):
    """Text on a stream where frames were expected, or on stderr."""

    type: ClassVar[Literal["output_received"]]
    stream: Literal["stdout", "stderr"]
    """The stream."""
    text: str
    """The text."""


class RawReceived(Event, frozen=True, kw_only=True):
    """A frame that the adapter does not know, unchanged."""

    type: ClassVar[Literal["raw_received"]]
    frame: Json
    """The frame."""


class EventsPruned(Event, frozen=True, kw_only=True):
    """Placeholder for pruned events: the numbers `first` to `last`."""

    type: ClassVar[Literal["events_pruned"]]
    first: int
    """First pruned number."""
    last: int
    """Last pruned number."""
