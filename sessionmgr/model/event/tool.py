"""What an agent does with tools, and what it was allowed."""

from __future__ import annotations

from typing import ClassVar, Literal

from sessionmgr.model.event.envelope import Event
from sessionmgr.model.json_codec import Json


class ToolCallStarted(Event, frozen=True, kw_only=True):
    """A tool is being called."""

    type: ClassVar[Literal["tool_call_started"]]
    tool_call_id: str
    """Id of the call."""
    tool_name: str
    """Name of the tool."""
    tool_input: Json = None
    """Input of the tool."""


class ToolCallUpdated(Event, frozen=True, kw_only=True):
    """The tool printed some more."""

    type: ClassVar[Literal["tool_call_updated"]]
    tool_call_id: str
    """Id of the call."""
    output_delta: str
    """The new output."""


class ToolCallEnded(Event, frozen=True, kw_only=True):
    """A tool call is over, in one of two ways."""

    tool_call_id: str
    """Id of the call."""
    tool_name: str
    """Name of the tool."""
    tool_input: Json = None
    """Input of the tool, if it differs from that of `tool_call_started`."""
    tool_output: Json = None
    """Output of the tool."""


class ToolCallCompleted(ToolCallEnded, frozen=True, kw_only=True):
    """The tool did what it was asked."""

    type: ClassVar[Literal["tool_call_completed"]]


class ToolCallFailed(ToolCallEnded, frozen=True, kw_only=True):
    """The tool did not, or was not allowed to."""

    type: ClassVar[Literal["tool_call_failed"]]


class ToolApproval(Event, frozen=True, kw_only=True):
    """Something about a question whether a tool may be used."""

    approval_id: str
    """Id of the request (`apr_…`); `sessionmgr approve` takes it."""
    tool_call_id: str | None = None
    """Id of the tool call, if the provider names one."""
    tool_name: str = ""
    """Name of the tool."""
    tool_input: Json = None
    """Input of the tool."""
    reason: str | None = None
    """Reason for the request or the decision."""
    by: str | None = None
    """Source of the decision: `caller`, `rules`, `mode`, `request` (a command), `deadline`, …."""


class ToolApprovalRequested(ToolApproval, frozen=True, kw_only=True):
    """The agent asks whether it may."""

    type: ClassVar[Literal["tool_approval_requested"]]

    timeout: float | None = None
    """Seconds after which an unanswered request is denied; None: no answer is awaited, or no limit
    is set."""


class ToolApprovalGranted(ToolApproval, frozen=True, kw_only=True):
    """It may; a changed `tool_input` is what it may do instead."""

    type: ClassVar[Literal["tool_approval_granted"]]


class ToolApprovalDenied(ToolApproval, frozen=True, kw_only=True):
    """It may not."""

    type: ClassVar[Literal["tool_approval_denied"]]
