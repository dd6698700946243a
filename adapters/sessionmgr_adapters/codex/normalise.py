"""Codex's frames as events. Pure: no I/O, no clock, no waiting, and no exceptions.

Complete items are authoritative; deltas are a preview of them. Codex abandons an item that starts
and never ends, because it asks the model again; the text of such an item belongs to no message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from sessionmgr.adapter.kit import PeerRequest, RpcAnswer, undecoded_event
from sessionmgr.model import (
    CompactionCompleted,
    CompactionFailed,
    CompactionStarted,
    ErrorOccurred,
    Failure,
    FailureKind,
    MessageReceived,
    MessageStreamed,
    PlanEntry,
    PlanUpdated,
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
from sessionmgr_adapters.codex import frames, items
from sessionmgr_adapters.codex.failures import failure_of, retry_failure
from sessionmgr_adapters.codex.items import (
    is_call,
    item_agents,
    starts_agents,
    tool_ended_event,
    tool_started_event,
)
from sessionmgr_adapters.codex.state import limit_events

if TYPE_CHECKING:
    from sessionmgr.model import Event
    from sessionmgr_adapters.codex.frames import CodexFrame
    from sessionmgr_adapters.codex.items import KnownItem
    from sessionmgr_adapters.codex.state import CodexState

Parent: TypeAlias = str | UnsetType

WARNINGS: Final = 100
"""Maximum number of warnings that are remembered."""
NO_TOKENS: Final = frames.CodexTokenCounts()
# Frames that do not show that the run has started; their events are held back until it has.
_INCIDENTS: Final = frozenset({"error_occurred", "output_received", "raw_received"})
_STATUS: Final = {"inProgress": "in_progress"}


def normalise(frame: CodexFrame, state: CodexState) -> list[Event]:
    """Return the events for a frame; empty if it is not about the run."""
    parent = parent_tool_call(frame.thread_id, state) if isinstance(frame, frames.Notice) else UNSET
    events = _events(frame, state)
    if parent is not UNSET:
        events = [replace(each, parent_tool_call_id=parent) for each in events]
    if state.started:
        return events
    if all(each.type in _INCIDENTS for each in events):
        state.early += events
        return []
    return [*start_events(state), *events]


def start_events(state: CodexState) -> list[Event]:
    """Return the event for the start of the run, and those held back until then."""
    state.started = True
    early, state.early = state.early, []
    hello = state.hello or frames.ServerInfo()
    begun = RunStarted(
        provider_session_id=state.thread or None,
        model=state.model,
        cwd=state.cwd,
        permission=state.permission,
        cli_version=hello.version,
        credential=hello.credential,
    )
    return [begun, *early]


def _events(frame: CodexFrame, state: CodexState) -> list[Event]:
    match frame:
        case frames.CodexDelta():
            return _delta_event(frame, state)
        case frames.ItemStartedNotice():
            return _item_started(frame, state)
        case frames.ItemEndedNotice():
            return _item_ended(frame, state)
        case frames.TurnStartedNotice() | frames.TurnEndedNotice():
            return _turn_events(frame, state)
        case frames.TokenUsageNotice():
            return _usage_events(frame, state)
        case frames.ErrorNotice():
            return _error_events(frame, state)
        case frames.PlanNotice():
            return _plan_event(frame)
        case frames.LimitsNotice(rate_limits=limits):
            return limit_events(limits, state)
        case frames.WarningNotice():
            return _warning(frame, state)
        case frames.ModelReroutedNotice():
            return _rerouted(frame, state)
        case frames.ThreadStartedNotice() | frames.ThreadClosedNotice():
            _note_thread(frame, state)
            return []
        case frames.UnknownNotice():
            return [RawReceived(frame={"method": frame.method, "params": frame.params})]
        case frames.ServerInfo() | RpcAnswer() | PeerRequest() | frames.Notice():
            return []
        case _:
            return [undecoded_event(frame)]


def _delta_event(frame: frames.CodexDelta, state: CodexState) -> list[Event]:
    item, delta = frame.item_id, frame.delta
    match frame:
        case frames.CodexMessageDelta():
            return [MessageStreamed(delta=delta, message_id=state.name(item))]
        case frames.CodexReasoningDelta():
            return [ReasoningStreamed(delta=delta)]
        case _:
            return [ToolCallUpdated(tool_call_id=item, output_delta=delta)]


def _plan_event(frame: frames.PlanNotice) -> list[Event]:
    entries = tuple(
        PlanEntry(content=each.step, status=_STATUS.get(each.status, each.status))
        for each in frame.plan
    )
    return [PlanUpdated(entries=entries)]


def parent_tool_call(thread_id: str, state: CodexState) -> Parent:
    """Return the tool call that started an agent's thread; none for the run's own thread."""
    if _is_own(thread_id, state):
        return UNSET
    return state.agents.caller(thread_id) or thread_id


def _is_own(thread_id: str, state: CodexState) -> bool:
    """Whether a thread is the run's own, and not that of an agent."""
    return thread_id in ("", state.thread)


# --- items ---------------------------------------------------------------------------------------


def _item_started(frame: frames.ItemStartedNotice, state: CodexState) -> list[Event]:
    item = frame.item
    if _is_own(frame.thread_id, state) and not isinstance(
        item, items.UserMessageItem | items.ContextCompactionItem
    ):
        state.unanswered.clear()
        state.retried = None
    match item:
        case items.AgentMessageItem():
            state.begin(item.id)
            return []
        case items.UserMessageItem(client_id=name):
            if name is not None:
                state.unanswered.add(name)
            return []
        case items.ContextCompactionItem():
            state.compacting[item.id] = frame.thread_id
            return [CompactionStarted()]
        case items.UnknownItem(value=value):
            return [RawReceived(frame=value)]
        case _ if is_call(item) and item.id not in state.tools:
            _note_agents(item, state)
            state.tools[item.id] = item
            state.threads[item.id] = frame.thread_id
            if isinstance(item, items.CommandItem):
                state.has_commanded = True
            return [tool_started_event(item)]
        case _:
            return []


def _item_ended(frame: frames.ItemEndedNotice, state: CodexState) -> list[Event]:
    item = frame.item
    match item:
        case items.AgentMessageItem(text=text):
            if not text:
                return []
            if _is_own(frame.thread_id, state):
                state.text, state.retried = text, None
            return [MessageReceived(content=text, message_id=state.name(item.id))]
        case items.ReasoningItem():
            text = "\n\n".join(item.summary or item.content)
            return [ReasoningReceived(content=text)] if text else []
        case items.PlanItem(text=text):
            return [PlanUpdated(entries=(PlanEntry(content=text),))]
        case items.ContextCompactionItem():
            state.compacting.pop(item.id, None)
            return [CompactionCompleted()]
        case items.UnknownItem(value=value):
            return [RawReceived(frame=value)]
        case _ if is_call(item):
            _note_agents(item, state)
            begun = state.tools.pop(item.id, None)
            state.threads.pop(item.id, None)
            first: list[Event] = [] if begun else [tool_started_event(item)]
            return [*first, tool_ended_event(item)]
        case _:
            return []


def _note_agents(item: KnownItem, state: CodexState) -> None:
    for thread in item_agents(item):
        if thread != state.thread:  # an agent may send a message to its caller
            state.agents.call(thread, item.id, works=starts_agents(item))
            if isinstance(item, items.SubAgentItem) and item.kind == "interacted":
                state.agents.addressed.add(thread)


# --- turns ---------------------------------------------------------------------------------------


def _turn_events(
    frame: frames.TurnStartedNotice | frames.TurnEndedNotice, state: CodexState
) -> list[Event]:
    if not _is_own(frame.thread_id, state):
        return _agent_turn_events(frame, state)
    if isinstance(frame, frames.TurnStartedNotice):
        state.is_turning, state.retried = True, None
        return [] if state.started else start_events(state)
    if frame.turn.id != state.turn:
        return []  # a turn of an earlier run
    state.is_turning = False
    state.retries.pop(frame.thread_id, None)
    events = _compaction_failure(frame.thread_id, state)
    if state.usage is not None:
        events.append(
            SessionStatsUpdated(
                model=state.model,
                context_window=state.usage.model_context_window,
                context_used=state.usage.last.total_tokens,
                usage=token_usage(state.usage.total),
            )
        )
    own = sum(_is_own(each, state) for each in state.threads.values())
    tasks = own + len(state.agents.working)
    events.append(TurnCompleted(stop_reason=frame.turn.status, open_tasks=tasks))
    return events


def _note_thread(
    frame: frames.ThreadStartedNotice | frames.ThreadClosedNotice, state: CodexState
) -> None:
    if isinstance(frame, frames.ThreadClosedNotice):
        state.agents.thread_closed(frame.thread_id)
    elif frame.thread.parent_thread_id is not None and frame.thread.id != state.thread:
        state.agents.call(frame.thread.id)


def _agent_turn_events(
    frame: frames.TurnStartedNotice | frames.TurnEndedNotice, state: CodexState
) -> list[Event]:
    """Record whether an agent works. An agent's failed turn is a warning, as the run continues."""
    thread, turn = frame.thread_id, frame.turn
    if isinstance(frame, frames.TurnStartedNotice):
        state.agents.turn_started(thread, turn.id)
        return []
    state.retries.pop(thread, None)
    events = _compaction_failure(thread, state)
    if state.agents.turn_ended(thread, turn.id) and turn.error is not None:
        failure = failure_of(turn.error.codex_error_info, turn.error.message)
        events.append(ErrorOccurred(failure=failure, severity="warning"))
    return events


def _compaction_failure(thread_id: str, state: CodexState) -> list[Event]:
    """Return the event for a compaction that was started in a thread and did not succeed."""
    open_ = [name for name, thread in state.compacting.items() if thread == thread_id]
    for name in open_:
        del state.compacting[name]
    return [CompactionFailed() for _ in open_]


def _usage_events(frame: frames.TokenUsageNotice, state: CodexState) -> list[Event]:
    """Return the usage since the last report; a resumed thread reports its old usage again."""
    used = frame.token_usage
    known = state.booked.get(frame.thread_id)
    is_own = _is_own(frame.thread_id, state)
    state.booked[frame.thread_id] = used.total
    if is_own:
        state.usage = used
        if frame.turn_id != state.turn:
            return []
        state.unanswered.clear()
    if known is None:
        known = (
            _token_difference(used.total, used.last)
            if state.is_resumed or not is_own
            else NO_TOKENS
        )
    delta = token_usage(used.total, known)
    if delta == Usage():
        return []
    state.retries.pop(frame.thread_id, None)
    if is_own:
        state.retried = None
    return [TokenUsageUpdated(usage=delta, total=token_usage(used.total))]


def _token_difference(
    total: frames.CodexTokenCounts, last: frames.CodexTokenCounts
) -> frames.CodexTokenCounts:
    names = frames.CodexTokenCounts.__struct_fields__
    return frames.CodexTokenCounts(
        **{name: getattr(total, name) - getattr(last, name) for name in names}
    )


def token_usage(now: frames.CodexTokenCounts, before: frames.CodexTokenCounts = NO_TOKENS) -> Usage:
    """Return the usage between two readings; Codex counts cached tokens as input too."""
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


# --- errors and warnings -------------------------------------------------------------------------


def _error_events(frame: frames.ErrorNotice, state: CodexState) -> list[Event]:
    if not frame.will_retry:
        return []  # the end of the turn reports it again
    thread = frame.thread_id
    attempt = state.retries[thread] = frame.attempt or state.retries.get(thread, 0) + 1
    if _is_own(thread, state):
        state.retried = frame.error.codex_error_info
    failure = retry_failure(frame.error.codex_error_info, frame.error.message)
    return [RetryScheduled(by="provider", attempt=attempt, failure=failure)]


def _rerouted(frame: frames.ModelReroutedNotice, state: CodexState) -> list[Event]:
    odd = _unknown_event(f"{frame.to_model} answers instead of {frame.from_model}")
    is_own = _is_own(frame.thread_id, state)
    return [odd, SessionStatsUpdated(model=frame.to_model)] if is_own else [odd]


def _warning(frame: frames.WarningNotice, state: CodexState) -> list[Event]:
    message = frame.message or frame.summary
    message = f"{message}: {frame.details}" if frame.details else message
    if frame.thread_id:
        return [_unknown_event(message)]
    if message in state.warned:
        return []
    if len(state.warned) < WARNINGS:
        state.warned.add(message)
    return [_unknown_event(message)]


def _unknown_event(message: str) -> Event:
    failure = Failure(kind=FailureKind.PROVIDER_ERROR, message=message)
    return ErrorOccurred(failure=failure, severity="warning")
