"""The frames of `gemini -o stream-json` as events. Pure: no I/O, no clock, and no exceptions.

Gemini streams text without marking the end of a message, so a message ends before a tool call and
with the turn. Its thoughts are not printed.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from sessionmgr.adapter.kit import undecoded_event
from sessionmgr.model import (
    ErrorOccurred,
    Failure,
    FailureKind,
    MessageReceived,
    MessageStreamed,
    RunStarted,
    TokenUsageUpdated,
    ToolApprovalDenied,
    ToolApprovalRequested,
    ToolCallCompleted,
    ToolCallFailed,
    ToolCallStarted,
    TurnCompleted,
    Usage,
)
from sessionmgr_adapters.gemini.headless import frames
from sessionmgr_adapters.gemini.headless.repeated_text import RepetitionFilter

if TYPE_CHECKING:
    from sessionmgr.model import Event
    from sessionmgr_adapters.gemini.headless.frames import AnyHeadlessFrame

_MAX_MESSAGE: Final = 16 * 1024 * 1024
"""Characters of a message that are kept for its end."""


class HeadlessState:
    """The state of a run between frames."""

    def __init__(self) -> None:
        self.session = ""
        """Gemini's id of the session, or "" before it is known."""
        self.outcome: frames.OutcomeFrame | None = None
        self.notice: str | None = None
        """The last error, unless the model has continued after it."""
        self.tools: Final[dict[str, frames.ToolUseFrame]] = {}
        """Calls that have not ended, by their ids."""
        self._filter: Final = RepetitionFilter()
        self._pieces: list[str] = []
        self._size = 0
        self._messages = 1

    def stream(self, text: str, at: float | None) -> list[Event]:
        """Return the events for a piece of the model's text."""
        return self._show(self._filter.feed(text, at))

    def end_message(self, *, failed: bool = False) -> list[Event]:
        """Return the events for the end of the message, if there is one."""
        events = self._show(self._filter.end(failed=failed))
        if self._pieces:
            events.append(MessageReceived(content="".join(self._pieces), message_id=self._id))
            self._messages += 1
        self._pieces, self._size = [], 0
        return events

    @property
    def _id(self) -> str:
        return f"message-{self._messages}"

    def _show(self, text: str) -> list[Event]:
        if not text:
            return []
        if self._size < _MAX_MESSAGE:
            self._pieces.append(text)
            self._size += len(text)
        return [MessageStreamed(delta=text, message_id=self._id)]


def normalise(frame: AnyHeadlessFrame, state: HeadlessState) -> list[Event]:
    """Return the events for a frame; empty if it has none."""
    match frame:
        case frames.InitFrame():
            is_first, state.session = not state.session, frame.session_id
            started = RunStarted(provider_session_id=frame.session_id, model=frame.model)
            return [started] if is_first else []
        case frames.MessageFrame(role="assistant"):
            state.notice = None
            return state.stream(frame.content, _seconds(frame.timestamp))
        case frames.MessageFrame(role="user"):
            return []
        case frames.ToolUseFrame():
            state.notice = None
            return _tool_started(frame, state)
        case frames.ToolResultFrame():
            return _tool_ended(frame, state)
        case frames.NoticeFrame():
            return _notice(frame, state)
        case frames.OutcomeFrame():
            return _outcome(frame, state)
        case frames.MessageFrame():
            return [MessageReceived(content=frame.content, role=frame.role)]
        case _:
            return [undecoded_event(frame)]


def _tool_started(frame: frames.ToolUseFrame, state: HeadlessState) -> list[Event]:
    state.tools[frame.tool_id] = frame
    started = ToolCallStarted(
        tool_call_id=frame.tool_id, tool_name=frame.tool_name, tool_input=frame.parameters
    )
    return [*state.end_message(), started]


def _tool_ended(frame: frames.ToolResultFrame, state: HeadlessState) -> list[Event]:
    call = state.tools.pop(frame.tool_id, None) or frames.ToolUseFrame("", frame.tool_id)
    error = frame.error or frames.HeadlessError()
    output = error.message or frame.output
    ended = ToolCallCompleted if frame.status == frames.SUCCESS else ToolCallFailed
    event = ended(tool_call_id=call.tool_id, tool_name=call.tool_name, tool_output=output)
    is_denied = ended is ToolCallFailed and error.type == frames.DENIED
    return [*(_denial(call, error.message) if is_denied else ()), event]


def _denial(call: frames.ToolUseFrame, reason: str) -> list[Event]:
    """Return the events of a call that Gemini's rules denied without a request."""
    approval_id = f"{call.tool_id}.rule"
    return [
        ToolApprovalRequested(
            approval_id=approval_id,
            tool_call_id=call.tool_id,
            tool_name=call.tool_name,
            tool_input=call.parameters,
            synthetic=True,
        ),
        ToolApprovalDenied(
            approval_id=approval_id,
            tool_call_id=call.tool_id,
            tool_name=call.tool_name,
            tool_input=call.parameters,
            reason=reason,
            by="provider",
        ),
    ]


def _notice(frame: frames.NoticeFrame, state: HeadlessState) -> list[Event]:
    if frame.severity == frames.ERROR:
        state.notice = frame.message
        return []  # the end of the run reports it
    failure = Failure(kind=FailureKind.PROVIDER_ERROR, message=frame.message, phase="turn")
    return [ErrorOccurred(failure=failure, severity="warning")]


def _outcome(frame: frames.OutcomeFrame, state: HeadlessState) -> list[Event]:
    if state.outcome is not None:
        return []
    state.outcome = frame
    has_failed = frame.status != frames.SUCCESS
    events = state.end_message(failed=has_failed)
    used = token_usage(frame.stats)
    if used != Usage():
        events.append(TokenUsageUpdated(usage=used, total=used))
    return [*events, TurnCompleted(stop_reason=frame.status)]


def token_usage(stats: frames.HeadlessStats | None) -> Usage:
    """Return the usage of a run; tokens that are neither input nor text are those of thoughts."""
    if stats is None:
        return Usage()
    cached = min(stats.cached, stats.input_tokens)
    thoughts = max(0, stats.total_tokens - stats.input_tokens - stats.output_tokens)
    return Usage(
        input=stats.input_tokens - cached,
        cached_input=cached,
        output=stats.output_tokens + thoughts,
        reasoning=thoughts,
    )


def _seconds(timestamp: str) -> float | None:
    try:
        return datetime.fromisoformat(timestamp).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
