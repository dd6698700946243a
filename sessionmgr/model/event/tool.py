"""Events of tool calls and of their approval."""

from __future__ import annotations

from typing import ClassVar, Literal

from sessionmgr.model.event.envelope import Event
from sessionmgr.model.json_codec import Json


class ToolCallStarted(Event, frozen=True, kw_only=True):
    """A tool call has started."""

    type: ClassVar[Literal["tool_call_started"]]
    tool_call_id: str
    """Id of the call."""
    tool_name: str
    """Name of the tool."""
    tool_input: Json = None
    """Input of the tool."""


class ToolCallUpdated(Event, frozen=True, kw_only=True):
    """The tool wrote more output."""

    type: ClassVar[Literal["tool_call_updated"]]
    tool_call_id: str
    """Id of the call."""
    output_delta: str
    """The new output."""


class ToolCallEnded(Event, frozen=True, kw_only=True):
    """A tool call has ended, in one of two ways."""

    tool_call_id: str
    """Id of the call."""
    tool_name: str
    """Name of the tool."""
    tool_input: Json = None
    """Input of the tool, if it differs from that of `tool_call_started`."""
    tool_output: Json = None
    """Output of the tool."""


class ToolCallCompleted(ToolCallEnded, frozen=True, kw_only=True):
    """The tool call succeeded."""

    type: ClassVar[Literal["tool_call_completed"]]


class ToolCallFailed(ToolCallEnded, frozen=True, kw_only=True):
    """The tool call failed or was denied."""

    type: ClassVar[Literal["tool_call_failed"]]


class ToolApproval(Event, frozen=True, kw_only=True):
    """An approval request for a tool call, or the answer to it."""

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
    """The agent asks for approval of a tool call."""

    type: ClassVar[Literal["tool_approval_requested"]]

    timeout: float | None = None
    """Seconds after which an unanswered request is denied; None: no answer is expected, or there is
    no limit.
    """


class ToolApprovalGranted(ToolApproval, frozen=True, kw_only=True):
    """The request was granted; a changed `tool_input` replaces the requested one."""

    type: ClassVar[Literal["tool_approval_granted"]]


class ToolApprovalDenied(ToolApproval, frozen=True, kw_only=True):
    """The request was denied."""

    type: ClassVar[Literal["tool_approval_denied"]]
