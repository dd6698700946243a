"""Claude Code's frames to events. Pure: no I/O, no clock, nothing that waits, nothing raised.

Whole blocks (`assistant`) are the truth and streamed pieces a preview of them. Each block of a
message is a message of its own here, named after the message and its place in it, because that is
how Claude Code tells them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import UNSET, UnsetType

from sessionmgr.adapter.kit.undecoded import undecoded_event
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
    moment,
)
from sessionmgr_adapters.claude.failures import failure_of, retry_failure
from sessionmgr_adapters.claude.frames import (
    Assistant,
    ControlReply,
    ConversationReset,
    HostRequest,
    HostRequestWithdrawn,
    KeepAlive,
    Lifecycle,
    RateLimit,
    Result,
    StreamEvent,
    System,
    TextBlock,
    ThinkingBlock,
    ToolResult,
    ToolUse,
    User,
)

if TYPE_CHECKING:
    from sessionmgr.model import Event
    from sessionmgr.wire import NoFrame
    from sessionmgr_adapters.claude.frames import Block, Frame
    from sessionmgr_adapters.claude.state import State

Parent: TypeAlias = str | UnsetType

# What may be told of a run that has not begun.
_INCIDENTS: Final = frozenset({"error_occurred", "output_received", "raw_received"})


def normalise(frame: Frame | NoFrame, state: State) -> list[Event]:
    """Return the events that a frame is; none if it is not about what happens in the run."""
    if type(frame) is StreamEvent and state.started:  # nearly all are: the short way
        return _streamed(frame, state)
    events = _events(frame, state)
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


def _events(frame: Frame | NoFrame, state: State) -> list[Event]:
    match frame:
        case StreamEvent():
            return _streamed(frame, state)
        case Assistant():
            return _assistant(frame, state)
        case User():
            return _user(frame, state)
        case System():
            return _system(frame, state)
        case Result():
            return _result(frame, state)
        case RateLimit(rate_limit_info=info):
            state.limit = info
            return [
                RateLimitUpdated(
                    bucket=info.rate_limit_type or "unknown",
                    state=info.status,
                    resets_at=moment.told(info.resets_at),
                    utilisation=info.utilization,
                )
            ]
        case ConversationReset(new_conversation_id=session_id):
            state.session_id = session_id
            return [ProviderSessionUpdated(provider_session_id=session_id)]
        case HostRequest(request=ask):
            if ask.tool_use_id is not None and ask.subtype == "can_use_tool":
                state.judge(ask.tool_use_id)
            return []  # the adapter's business
        case Lifecycle() | KeepAlive() | ControlReply() | HostRequestWithdrawn():
            return []
        case _:
            return [undecoded_event(frame)]


# --- what is said --------------------------------------------------------------------------------


def _streamed(frame: StreamEvent, state: State) -> list[Event]:
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
        message = "the model's reply broke off, and is asked for again"
        failure = Failure(kind=FailureKind.PROVIDER_ERROR, message=message, retryable=True)
        return [RetryScheduled(by="provider", attempt=1, delay=0, failure=failure)]
    return []


def _assistant(frame: Assistant, state: State) -> list[Event]:
    if frame.error is not None:
        state.error = frame  # the result says what that comes to
        return []
    parent = _parent(frame.parent_tool_use_id)
    if parent is UNSET:
        state.fill(frame)
    message = frame.message
    content = [TextBlock(message.content)] if isinstance(message.content, str) else message.content
    return [
        event for block in content for event in _block(block, state.name(message.id), parent, state)
    ]


def _block(block: Block, name: str, parent: Parent, state: State) -> list[Event]:
    match block:
        case TextBlock(text=text):
            if not text:
                return []
            return [MessageReceived(content=text, message_id=name, parent_tool_call_id=parent)]
        case ThinkingBlock(thinking=thinking):
            if not thinking:
                return []
            return [ReasoningReceived(content=thinking, parent_tool_call_id=parent)]
        case ToolUse():
            if not state.begin(block):
                return []
            return [
                ToolCallStarted(
                    tool_call_id=block.id,
                    tool_name=block.name,
                    tool_input=block.input,
                    parent_tool_call_id=parent,
                )
            ]
        case ToolResult():
            return _tool_ended(block, parent, state)
        case _:
            return []


def _user(frame: User, state: State) -> list[Event]:
    content = frame.message.content
    if isinstance(content, str):
        return []
    parent = _parent(frame.parent_tool_use_id)
    results = [each for each in content if isinstance(each, ToolResult)]
    return [event for each in results for event in _tool_ended(each, parent, state)]


def _tool_ended(block: ToolResult, parent: Parent, state: State) -> list[Event]:
    if not state.end(block.tool_use_id):
        return []
    call = state.tools.pop(block.tool_use_id, None)
    ended = ToolCallFailed if block.is_error else ToolCallCompleted
    output, images = state.images.extract(block.content)
    return [
        ended(
            tool_call_id=block.tool_use_id,
            tool_name=call.name if call else "",
            tool_input=call.input if call else None,
            tool_output=output,
            parent_tool_call_id=parent,
        ),
        *images,
    ]


# --- what Claude Code says of itself -------------------------------------------------------------


def _system(frame: System, state: State) -> list[Event]:
    match frame.subtype:
        case "init":
            return _init(frame, state)
        case "status":
            return _status(frame, state)
        case "compact_boundary":
            state.compacting = False
            metadata = frame.compact_metadata
            return [CompactionCompleted(trigger=metadata.trigger if metadata else None)]
        case "api_retry":
            return [
                RetryScheduled(
                    by="provider",
                    attempt=int(frame.attempt),
                    delay=frame.retry_delay_ms / 1000,
                    failure=retry_failure(frame),
                )
            ]
        case "model_fallback":
            return _fell_back(frame)
        case "permission_denied" if frame.tool_use_id is not None:
            reason = frame.decision_reason or _text(frame.message)
            return _denied(frame.tool_name or "", frame.tool_use_id, reason, state)
        case "background_tasks_changed":
            state.tasks.clear()
            state.tasks.update(each.task_id for each in frame.tasks)
            return []
        case "task_started" | "task_updated" | "task_notification":
            _note_task(frame, state)
            return []
        case _:
            return []


def _init(frame: System, state: State) -> list[Event]:
    renamed = state.session_id not in (None, frame.session_id)
    state.session_id = frame.session_id
    state.version = frame.version or state.version
    if state.started:
        if renamed:
            return [ProviderSessionUpdated(provider_session_id=frame.session_id)]
        return []
    if state.credential == "unknown" and frame.api_key_source not in (None, "none"):
        state.credential = "api_key"
    return [
        RunStarted(
            provider_session_id=frame.session_id,
            model=frame.model or None,
            cwd=frame.cwd or None,
            cli_version=state.version,
            credential=state.credential,
        )
    ]


def _status(frame: System, state: State) -> list[Event]:
    if frame.status == "compacting":
        state.compacting = True
        return [CompactionStarted()]
    state.compacting = False
    return [CompactionFailed()] if frame.compact_result == "failed" else []


def _fell_back(frame: System) -> list[Event]:
    message = f"{frame.original_model} is {frame.trigger}: {frame.fallback_model} in its stead"
    failure = Failure(kind=FailureKind.OVERLOADED, message=message, provider_code=frame.trigger)
    return [
        ErrorOccurred(failure=failure, severity="warning"),
        SessionStatsUpdated(model=frame.fallback_model),
    ]


def _note_task(frame: System, state: State) -> None:
    """Follow what is in the background, also where nobody lists it: older ones do not."""
    if frame.task_id is None:
        return
    status = frame.patch.status if frame.patch else None
    moved = frame.is_backgrounded or (frame.patch is not None and frame.patch.is_backgrounded)
    moved = moved or frame.tool_use_id in state.sent_away  # older ones do not say it
    if frame.subtype == "task_notification" or status in {"completed", "failed", "killed"}:
        state.tasks.discard(frame.task_id)
    elif moved:
        state.tasks.add(frame.task_id)


def _denied(tool: str, tool_use_id: str, reason: str | None, state: State) -> list[Event]:
    """Tell of a call that was denied without a question."""
    if not state.judge(tool_use_id):
        return []
    call = state.tools.get(tool_use_id)
    asked = ToolApprovalRequested(
        approval_id=f"{tool_use_id}.rule",
        tool_call_id=tool_use_id,
        tool_name=tool,
        tool_input=call.input if call else None,
        synthetic=True,
    )
    denied = ToolApprovalDenied(
        approval_id=asked.approval_id,
        tool_call_id=asked.tool_call_id,
        tool_name=tool,
        tool_input=asked.tool_input,
        reason=reason,
        by="provider",
    )
    return [asked, denied]


def _result(frame: Result, state: State) -> list[Event]:
    state.failure = failure_of(frame, state.error, state.limit)
    state.error = None
    events: list[Event] = []
    for each in frame.permission_denials:
        if each.tool_use_id is not None:
            events += _denied(each.tool_name, each.tool_use_id, None, state)
    spent = state.spending.book(frame)
    if spent is not None:
        events.append(spent)
    model, usage = next(iter((frame.since_last or frame.model_usage).items()), (None, None))
    window = usage.context_window if usage else None
    events.append(
        SessionStatsUpdated(
            model=model,
            context_window=None if window is None else int(window),
            context_used=state.context,
            usage=state.spending.total,
            terminal_reason=frame.terminal_reason,
        )
    )
    events.append(TurnCompleted(stop_reason=frame.ended_by, open_tasks=len(state.tasks)))
    return events


def _parent(tool_use_id: str | None) -> Parent:
    return UNSET if tool_use_id is None else tool_use_id


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
