"""Codex's frames to events. Pure: no I/O, no clock, nothing that waits, nothing raised.

Whole items are the truth and deltas a preview of them. An item that was begun and never ends was
given up by Codex, because it asks the model again: its text is part of nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from sessionmgr.model import (
    CompactionCompleted,
    CompactionStarted,
    ErrorOccurred,
    Failure,
    FailureKind,
    MessageReceived,
    MessageStreamed,
    PlanEntry,
    PlanUpdated,
    RateLimitUpdated,
    RawReceived,
    ReasoningReceived,
    ReasoningStreamed,
    RetryScheduled,
    RunStarted,
    SessionStatsUpdated,
    TokenUsageUpdated,
    ToolCallUpdated,
    TurnCompleted,
    Usage,
)
from sessionmgr.model.moment import written
from sessionmgr.provider.no_frame import told
from sessionmgr_adapters.codex.calls import ended_call, is_call, started_call
from sessionmgr_adapters.codex.failures import retry_failure
from sessionmgr_adapters.codex.frames import (
    Answer,
    Asking,
    Failing,
    Hello,
    ItemEnded,
    ItemStarted,
    LimitsChanged,
    MessageDelta,
    OutputDelta,
    PlanChanged,
    Quiet,
    ReasoningDelta,
    Rerouted,
    Resolved,
    SettingsChanged,
    StatusChanged,
    ThreadClosed,
    ThreadStarted,
    TokenCounts,
    TokensUsed,
    TurnEnded,
    TurnStarted,
    Unknown,
    Warned,
)
from sessionmgr_adapters.codex.items import (
    AgentMessage,
    CollabAgentToolCall,
    CommandExecution,
    ContextCompaction,
    Plan,
    Reasoning,
    UnknownItem,
    UserMessage,
)

if TYPE_CHECKING:
    from sessionmgr.model import Event
    from sessionmgr_adapters.codex.frames import Frame, Limits, Window
    from sessionmgr_adapters.codex.state import State

Parent: TypeAlias = str | UnsetType

# What is no sign of a run's beginning: it is told after that.
_INCIDENTS: Final = frozenset({"error_occurred", "output_received", "raw_received"})
_STATUS: Final = {"inProgress": "in_progress"}


def normalise(frame: Frame, state: State) -> list[Event]:
    """Return the events that a frame is; none if it is not about what happens in the run."""
    events = _events(frame, state)
    if state.started:
        return events
    if all(each.type in _INCIDENTS for each in events):
        state.early += events
        return []
    return [*started(state), *events]


def started(state: State) -> list[Event]:
    """Return the event that a run has begun, and what was held back until then."""
    state.started = True
    early, state.early = state.early, []
    begun = RunStarted(
        provider_session_id=state.thread or None,
        model=state.model,
        cwd=state.cwd,
        cli_version=state.version,
        credential=state.credential,
    )
    return [begun, *early]


def _events(frame: Frame, state: State) -> list[Event]:
    match frame:
        case MessageDelta():
            name = state.name(frame.item_id)
            parent = _parent(frame.thread_id, state)
            return [MessageStreamed(delta=frame.delta, message_id=name, parent_tool_call_id=parent)]
        case ReasoningDelta():
            parent = _parent(frame.thread_id, state)
            return [ReasoningStreamed(delta=frame.delta, parent_tool_call_id=parent)]
        case OutputDelta():
            parent = _parent(frame.thread_id, state)
            return [
                ToolCallUpdated(
                    tool_call_id=frame.item_id,
                    output_delta=frame.delta,
                    parent_tool_call_id=parent,
                )
            ]
        case ItemStarted():
            return _begun(frame, state)
        case ItemEnded():
            return _ended(frame, state)
        case TurnStarted() | TurnEnded():
            return _turn(frame, state)
        case TokensUsed():
            return _used(frame, state)
        case Failing():
            return _failing(frame, state)
        case PlanChanged(plan=plan):
            entries = tuple(
                PlanEntry(content=each.step, status=_STATUS.get(each.status, each.status))
                for each in plan
            )
            return [
                PlanUpdated(entries=entries, parent_tool_call_id=_parent(frame.thread_id, state))
            ]
        case LimitsChanged(rate_limits=limits):
            return _limits(limits, state)
        case Warned():
            return [_warning(frame)]
        case Rerouted():
            message = f"{frame.to_model} answers in the stead of {frame.from_model}"
            return [_odd(message), SessionStatsUpdated(model=frame.to_model)]
        case ThreadStarted(thread=thread):
            if thread.parent_thread_id is not None and thread.id != state.thread:
                state.callers.setdefault(thread.id, "")
            return []
        case Unknown():
            return [RawReceived(frame={"method": frame.method, "params": frame.params})]
        case (
            Hello()
            | Answer()
            | Asking()
            | Quiet()
            | StatusChanged()
            | ThreadClosed()
            | SettingsChanged()
            | Resolved()
        ):
            return []
        case _:
            return [told(frame)]


def _parent(thread_id: str, state: State) -> Parent:
    """Return the call by which a thread was begun that is not the run's own."""
    if thread_id in ("", state.thread):
        return UNSET
    return state.callers.get(thread_id) or thread_id


# --- items ---------------------------------------------------------------------------------------


def _begun(frame: ItemStarted, state: State) -> list[Event]:
    item, parent = frame.item, _parent(frame.thread_id, state)
    match item:
        case AgentMessage():
            state.begin(item.id)
            return []
        case UserMessage(client_id=name):
            if name is not None:
                state.heard.add(name)
            return []
        case ContextCompaction():
            return [CompactionStarted(parent_tool_call_id=parent)]
        case UnknownItem(value=value):
            return [RawReceived(frame=value)]
        case _ if is_call(item) and item.id not in state.tools:
            _note_agents(item, state)
            state.tools[item.id] = item
            state.used_commands = state.used_commands or isinstance(item, CommandExecution)
            return [started_call(item, parent)]
        case _:
            return []


def _ended(frame: ItemEnded, state: State) -> list[Event]:
    item, parent = frame.item, _parent(frame.thread_id, state)
    match item:
        case AgentMessage(text=text):
            if not text:
                return []
            name = state.name(item.id)
            if parent is UNSET:
                state.text = text
            return [MessageReceived(content=text, message_id=name, parent_tool_call_id=parent)]
        case Reasoning():
            text = "\n\n".join(item.summary or item.content)
            return [ReasoningReceived(content=text, parent_tool_call_id=parent)] if text else []
        case Plan(text=text):
            entries = (PlanEntry(content=text),)
            return [PlanUpdated(entries=entries, parent_tool_call_id=parent)]
        case ContextCompaction():
            return [CompactionCompleted(parent_tool_call_id=parent)]
        case UnknownItem(value=value):
            return [RawReceived(frame=value)]
        case _ if is_call(item):
            _note_agents(item, state)
            begun = state.tools.pop(item.id, None)
            first: list[Event] = [] if begun else [started_call(item, parent)]
            return [*first, ended_call(item, parent)]
        case _:
            return []


def _note_agents(item: object, state: State) -> None:
    if isinstance(item, CollabAgentToolCall):
        for thread in item.receiver_thread_ids:
            if thread != state.thread and not state.callers.get(thread):
                state.callers[thread] = item.id


# --- turns ---------------------------------------------------------------------------------------


def _turn(frame: TurnStarted | TurnEnded, state: State) -> list[Event]:
    if frame.thread_id not in ("", state.thread):
        return []
    if isinstance(frame, TurnStarted):
        return [] if state.started else started(state)
    if frame.turn.id != state.turn:
        return []  # of a run before this one
    state.retries = 0
    events: list[Event] = []
    if state.usage is not None:
        events.append(
            SessionStatsUpdated(
                model=state.model,
                context_window=state.usage.model_context_window,
                context_used=state.usage.last.total_tokens,
                usage=_usage(state.usage.total, TokenCounts()),
            )
        )
    events.append(TurnCompleted(stop_reason=frame.turn.status, open_tasks=len(state.tools)))
    return events


def _used(frame: TokensUsed, state: State) -> list[Event]:
    """Book what is new: a thread that is taken up again tells once more what was used before."""
    used = frame.token_usage
    known = state.booked.get(frame.thread_id)
    is_own = frame.thread_id in ("", state.thread)
    state.booked[frame.thread_id] = used.total
    if is_own:
        state.usage = used
        if frame.turn_id != state.turn:
            return []
    if known is None:
        known = _minus(used.total, used.last) if state.is_resumed or not is_own else TokenCounts()
    delta = _usage(used.total, known)
    if delta == Usage():
        return []
    state.retries = 0
    return [
        TokenUsageUpdated(
            usage=delta,
            total=_usage(used.total, TokenCounts()),
            parent_tool_call_id=_parent(frame.thread_id, state),
        )
    ]


def _minus(total: TokenCounts, last: TokenCounts) -> TokenCounts:
    names = TokenCounts.__struct_fields__
    return TokenCounts(**{name: getattr(total, name) - getattr(last, name) for name in names})


def _usage(now: TokenCounts, before: TokenCounts) -> Usage:
    """Return what was used in between; Codex counts what was cached as part of the input."""
    cached = max(0, now.cached_input_tokens - before.cached_input_tokens)
    written_ = max(0, now.cache_write_input_tokens - before.cache_write_input_tokens)
    read = max(0, now.input_tokens - before.input_tokens)
    return Usage(
        input=max(0, read - cached - written_),
        cached_input=cached,
        cache_write=written_,
        output=max(0, now.output_tokens - before.output_tokens),
        reasoning=max(0, now.reasoning_output_tokens - before.reasoning_output_tokens),
    )


# --- what goes wrong, or may ---------------------------------------------------------------------


def _failing(frame: Failing, state: State) -> list[Event]:
    if not frame.will_retry:
        return []  # the end of the turn says it again
    state.retries += 1
    state.retried = frame.error.codex_error_info
    failure = retry_failure(frame.error.codex_error_info, frame.error.message)
    return [RetryScheduled(by="provider", attempt=state.retries, failure=failure)]


def _warning(frame: Warned) -> Event:
    said = frame.message or frame.summary
    return _odd(f"{said}: {frame.details}" if frame.details else said)


def _odd(message: str) -> Event:
    failure = Failure(kind=FailureKind.PROVIDER_ERROR, message=message)
    return ErrorOccurred(failure=failure, severity="warning")


def _limits(limits: Limits, state: State) -> list[Event]:
    limits = _together(limits, state.limits)
    if limits == state.limits:
        return []
    state.limits = limits
    return [
        _limit(f"{limits.limit_id or 'codex'}/{name}", window, limits)
        for name, window in (("primary", limits.primary), ("secondary", limits.secondary))
        if window is not None
    ]


def _together(limits: Limits, known: Limits | None) -> Limits:
    """Add what is known already: an update, maybe for another run, leaves out what it has not."""
    if known is None or (limits.limit_id or known.limit_id) != known.limit_id:
        return limits
    return replace(
        limits,
        limit_id=known.limit_id,
        primary=limits.primary or known.primary,
        secondary=limits.secondary or known.secondary,
    )


def _limit(bucket: str, window: Window, limits: Limits) -> Event:
    return RateLimitUpdated(
        bucket=bucket,
        state=limits.rate_limit_reached_type or "allowed",
        resets_at=None if window.resets_at is None else written(window.resets_at),
        utilisation=window.used_percent / 100,
    )
