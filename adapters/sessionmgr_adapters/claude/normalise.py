"""Conversion of Claude Code's frames to events. Pure: no I/O, no clock, no waits, no exceptions.

Complete blocks (`assistant`) are authoritative, and streamed pieces are a preview of them. Each
block of a message becomes a message of its own, named after the message and its index in it,
because Claude Code reports block by block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import UNSET, UnsetType

from sessionmgr.adapter.kit import undecoded_event
from sessionmgr.model import (
    CompactionCompleted,
    CompactionFailed,
    CompactionStarted,
    ErrorOccurred,
    Failure,
    FailureKind,
    MessageReceived,
    MessageStreamed,
    ProviderSessionUpdated,
    RateLimitUpdated,
    ReasoningReceived,
    ReasoningStreamed,
    RetryScheduled,
    RunStarted,
    SessionStatsUpdated,
    ToolApprovalDenied,
    ToolApprovalRequested,
    ToolCallCompleted,
    ToolCallFailed,
    ToolCallStarted,
    TurnCompleted,
    format_optional_timestamp,
)
from sessionmgr_adapters.claude.failures import failure_of, retry_failure
from sessionmgr_adapters.claude.frames import (
    AssistantFrame,
    ControlReplyFrame,
    ConversationReset,
    HostRequest,
    HostRequestWithdrawn,
    KeepAliveFrame,
    MessageLifecycle,
    RateLimitFrame,
    ResultFrame,
    StreamEventFrame,
    SystemFrame,
    TextBlock,
    ThinkingBlock,
    ToolResult,
    ToolUse,
    UserFrame,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sessionmgr.model import Event
    from sessionmgr.wire import NoFrame
    from sessionmgr_adapters.claude.frames import Block, ClaudeFrame
    from sessionmgr_adapters.claude.state import ClaudeState

Parent: TypeAlias = str | UnsetType

# Events that may precede the start of a run.
_INCIDENTS: Final = frozenset({"error_occurred", "output_received", "raw_received"})


def normalise(frame: ClaudeFrame | NoFrame, state: ClaudeState) -> list[Event]:
    """Return the events of a frame; none if it does not concern the run."""
    events = list(_events(frame, state))
    if not state.started and any(each.type not in _INCIDENTS for each in events):
        state.started = True
        if not isinstance(events[0], RunStarted):
            start = RunStarted(
                provider_session_id=state.session_id,
                cli_version=state.version,
                credential=state.credential,
            )
            return [start, *events]
    return events


def _events(frame: ClaudeFrame | NoFrame, state: ClaudeState) -> Iterable[Event]:
    match frame:
        case StreamEventFrame():
            return _stream_event(frame, state)
        case AssistantFrame():
            return _assistant(frame, state)
        case UserFrame():
            return _user(frame, state)
        case SystemFrame():
            return _system(frame, state)
        case ResultFrame():
            return _result(frame, state)
        case RateLimitFrame(rate_limit_info=info):
            state.limit = info
            return [
                RateLimitUpdated(
                    bucket=info.rate_limit_type or "unknown",
                    state=info.status,
                    resets_at=format_optional_timestamp(info.resets_at),
                    utilisation=info.utilization,
                )
            ]
        case ConversationReset(new_conversation_id=session_id):
            state.session_id = session_id
            return [ProviderSessionUpdated(provider_session_id=session_id)]
        case HostRequest(request=ask):
            if ask.tool_use_id is not None and ask.subtype == "can_use_tool":
                state.record_decision(ask.tool_use_id)
            return ()  # the driver handles these
        case MessageLifecycle() | KeepAliveFrame() | ControlReplyFrame() | HostRequestWithdrawn():
            return ()
        case _:
            return [undecoded_event(frame)]


# --- messages ------------------------------------------------------------------------------------


def _stream_event(frame: StreamEventFrame, state: ClaudeState) -> Iterable[Event]:
    event = frame.event
    delta, parent = event.delta, _parent(frame.parent_tool_use_id)
    if delta is not None and delta.text:
        name = state.streamed_name(frame)
        return [MessageStreamed(delta=delta.text, message_id=name, parent_tool_call_id=parent)]
    if delta is not None and delta.thinking:
        return [ReasoningStreamed(delta=delta.thinking, parent_tool_call_id=parent)]
    if event.message is not None:
        state.streaming = event.message.id
    if frame.abandoned_blocks is not None:
        message = "the model's reply was cut off, and is requested again"
        failure = Failure(kind=FailureKind.PROVIDER_ERROR, message=message, retryable=True)
        return [RetryScheduled(by="provider", attempt=1, delay=0, failure=failure)]
    return ()


def _assistant(frame: AssistantFrame, state: ClaudeState) -> Iterator[Event]:
    if frame.error is not None:
        state.error = frame  # the result determines its consequence
        return
    parent = _parent(frame.parent_tool_use_id)
    if parent is UNSET:
        state.record_context_size(frame)
    message = frame.message
    content = [TextBlock(message.content)] if isinstance(message.content, str) else message.content
    for block in content:
        yield from _block_events(block, state.name(message.id), parent, state)


def _block_events(block: Block, name: str, parent: Parent, state: ClaudeState) -> Iterator[Event]:
    match block:
        case TextBlock(text=text) if text:
            yield MessageReceived(content=text, message_id=name, parent_tool_call_id=parent)
        case ThinkingBlock(thinking=thinking) if thinking:
            yield ReasoningReceived(content=thinking, parent_tool_call_id=parent)
        case ToolUse() if state.begin(block):
            yield ToolCallStarted(
                tool_call_id=block.id,
                tool_name=block.name,
                tool_input=block.input,
                parent_tool_call_id=parent,
            )
        case ToolResult():
            yield from _tool_ended(block, parent, state)
        case _:
            pass


def _user(frame: UserFrame, state: ClaudeState) -> Iterator[Event]:
    content = frame.message.content
    for each in () if isinstance(content, str) else content:
        if isinstance(each, ToolResult):
            yield from _tool_ended(each, _parent(frame.parent_tool_use_id), state)


def _tool_ended(block: ToolResult, parent: Parent, state: ClaudeState) -> Iterator[Event]:
    if not state.end(block.tool_use_id):
        return
    call = state.tools.pop(block.tool_use_id, None)
    ended = ToolCallFailed if block.is_error else ToolCallCompleted
    output, images = state.images.extract(block.content)
    yield ended(
        tool_call_id=block.tool_use_id,
        tool_name=call.name if call else "",
        tool_input=call.input if call else None,
        tool_output=output,
        parent_tool_call_id=parent,
    )
    yield from images


# --- reports of Claude Code about itself ---------------------------------------------------------


def _system(frame: SystemFrame, state: ClaudeState) -> Iterator[Event]:
    match frame.subtype:
        case "init":
            yield from _init(frame, state)
        case "status":
            state.compacting = frame.status == "compacting"
            if state.compacting:
                yield CompactionStarted()
            elif frame.compact_result == "failed":
                yield CompactionFailed()
        case "compact_boundary":
            state.compacting = False
            metadata = frame.compact_metadata
            yield CompactionCompleted(trigger=metadata.trigger if metadata else None)
        case "api_retry":
            yield RetryScheduled(
                by="provider",
                attempt=int(frame.attempt),
                delay=frame.retry_delay_ms / 1000,
                failure=retry_failure(frame),
            )
        case "model_fallback":
            why = frame.trigger
            message = f"{frame.original_model} is {why}; {frame.fallback_model} is used instead"
            failure = Failure(kind=FailureKind.OVERLOADED, message=message, provider_code=why)
            yield ErrorOccurred(failure=failure, severity="warning")
            yield SessionStatsUpdated(model=frame.fallback_model)
        case "permission_denied" if frame.tool_use_id is not None:
            text = frame.message if isinstance(frame.message, str) else None
            reason = frame.decision_reason or text
            yield from _denial_event(frame.tool_name or "", frame.tool_use_id, reason, state)
        case "background_tasks_changed":
            state.tasks.clear()
            state.tasks.update(each.task_id for each in frame.tasks)
        case "task_started" | "task_updated" | "task_notification":
            _note_task(frame, state)
        case _:
            pass


def _init(frame: SystemFrame, state: ClaudeState) -> Iterator[Event]:
    renamed = state.session_id not in (None, frame.session_id)
    state.session_id = frame.session_id
    state.version = frame.version or state.version
    if not state.started:
        if state.credential == "unknown" and frame.api_key_source not in (None, "none"):
            state.credential = "api_key"
        yield RunStarted(
            provider_session_id=frame.session_id,
            model=frame.model or None,
            cwd=frame.cwd or None,
            cli_version=state.version,
            credential=state.credential,
        )
    elif renamed:
        yield ProviderSessionUpdated(provider_session_id=frame.session_id)


def _note_task(frame: SystemFrame, state: ClaudeState) -> None:
    """Track background tasks, also for older versions, which do not list them."""
    if frame.task_id is None:
        return
    status = frame.patch.status if frame.patch else None
    moved = frame.is_backgrounded or (frame.patch is not None and frame.patch.is_backgrounded)
    moved = moved or frame.tool_use_id in state.background_calls  # older versions do not report it
    if frame.subtype == "task_notification" or status in {"completed", "failed", "killed"}:
        state.tasks.discard(frame.task_id)
    elif moved:
        state.tasks.add(frame.task_id)


def _denial_event(
    tool: str, tool_use_id: str, reason: str | None, state: ClaudeState
) -> Iterator[Event]:
    """Yield the events of a call that was denied without a request."""
    if not state.record_decision(tool_use_id):
        return
    call = state.tools.get(tool_use_id)
    approval_id, tool_input = f"{tool_use_id}.rule", call.input if call else None
    yield ToolApprovalRequested(
        approval_id=approval_id,
        tool_call_id=tool_use_id,
        tool_name=tool,
        tool_input=tool_input,
        synthetic=True,
    )
    yield ToolApprovalDenied(
        approval_id=approval_id,
        tool_call_id=tool_use_id,
        tool_name=tool,
        tool_input=tool_input,
        reason=reason,
        by="provider",
    )


def _result(frame: ResultFrame, state: ClaudeState) -> Iterator[Event]:
    state.failure = failure_of(frame, state.error, state.limit)
    state.error = None
    for each in frame.permission_denials:
        if each.tool_use_id is not None:
            yield from _denial_event(each.tool_name, each.tool_use_id, None, state)
    spent = state.usage.add_result(frame)
    if spent is not None:
        yield spent
    model, usage = next(iter((frame.since_last or frame.model_usage).items()), (None, None))
    window = usage.context_window if usage else None
    yield SessionStatsUpdated(
        model=model,
        context_window=None if window is None else int(window),
        context_used=state.context,
        usage=state.usage.total,
        terminal_reason=frame.terminal_reason,
    )
    yield TurnCompleted(stop_reason=frame.ended_by, open_tasks=len(state.tasks))


def _parent(tool_use_id: str | None) -> Parent:
    return UNSET if tool_use_id is None else tool_use_id
