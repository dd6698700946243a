"""What went wrong or looks odd; nothing of it ends a run."""

from __future__ import annotations

from typing import ClassVar, Literal

from sessionmgr.model.event.envelope import Event
from sessionmgr.model.failure import Failure
from sessionmgr.model.json_codec import Json


class StallSuspected(Event, frozen=True, kw_only=True):
    """It has been silent for long, in a state in which that is odd."""

    type: ClassVar[Literal["stall_suspected"]]
    state: str
    """The timeout that runs, such as `model` or `idle`."""
    silent_for: float
    """Seconds of silence."""
    evidence: Json = None
    """State of the process, where it is known."""


class PolicyViolation(Event, frozen=True, kw_only=True):
    """The agent did what it was not allowed, or a rule of ours was broken."""

    type: ClassVar[Literal["policy_violation"]]
    rule: str
    """The rule."""
    detail: str | None = None
    """What happened."""


class ErrorOccurred(Event, frozen=True, kw_only=True):
    """Something failed on the way; the run goes on."""

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
    """A frame that the adapter does not know, as it came."""

    type: ClassVar[Literal["raw_received"]]
    frame: Json
    """The frame."""


class EventsPruned(Event, frozen=True, kw_only=True):
    """In place of events that were pruned: their numbers, `first` to `last`."""

    type: ClassVar[Literal["events_pruned"]]
    first: int
    """First number that was pruned."""
    last: int
    """Last number that was pruned."""
