"""The reducer from events to a run's record: the only function that changes one.

It is total over event and state and reads no clock. A terminal status stays: the first terminal
event wins, and of later events only the exit of the process is recorded. Since results have no
other source, a run's result always agrees with its stream of events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import Any, Final, cast

from msgspec.structs import replace

from sessionmgr.model.event import (
    Event,
    ImageReceived,
    MessageReceived,
    MessageSent,
    MessageStreamed,
    ProcessExited,
    ProviderSessionUpdated,
    RetryScheduled,
    RunCancelled,
    RunCompleted,
    RunEnded,
    RunFailed,
    RunPaused,
    RunRateLimited,
    RunStarted,
    RunTimedOut,
    TokenUsageUpdated,
    ToolApprovalDenied,
    ToolApprovalGranted,
    ToolApprovalRequested,
    ToolCallCompleted,
    ToolCallEnded,
    ToolCallFailed,
    ToolCallStarted,
    TurnCompleted,
    UnknownEvent,
)
from sessionmgr.model.permission import PermissionDenial
from sessionmgr.model.run import Image, Run, ToolCalls
from sessionmgr.model.status import STATUS_EVENTS, TERMINAL, TRANSITIONS
from sessionmgr.model.timestamps import seconds_between
from sessionmgr.model.tool_summaries import tool_summary
from sessionmgr.model.usage import NOTHING_USED, UNKNOWN_COST, Cost

_STREAMED: Final = {MessageStreamed}
_PARENT: Final = attrgetter("parent_tool_call_id")


def reduce(run: Run, event: Event | UnknownEvent) -> Run:
    """Return the record of a run after `event`; an event of another run changes nothing."""
    if event.run_id != run.id:
        return run
    return _extend_range(_apply(run, event), event.seq, event.seq)


def reduce_all(run: Run, events: Iterable[Event | UnknownEvent]) -> Run:
    """Return the record after all `events`: the same as reducing one by one, but faster."""
    run_id = run.id
    own = [event for event in events if event.run_id == run_id]
    if len(own) == 1:
        return reduce(run, own[0])
    if not _CHANGES.keys().isdisjoint(map(type, own)):
        run = _reduce_each(run, own)
    numbers = [event.seq for event in own if event.seq]
    return _extend_range(run, min(numbers), max(numbers)) if numbers else run


def _reduce_each(run: Run, events: list[Event | UnknownEvent]) -> Run:
    streamed = _as_single_delta(events)
    for event in _join_deltas(events) if streamed is None else (streamed,):
        if type(event) in _CHANGES:
            run = _apply(run, event)
    return run


def _as_single_delta(events: list[Event | UnknownEvent]) -> MessageStreamed | None:
    """Return a batch of pieces of one message, as most are, as one event; otherwise None."""
    if set(map(type, events)) != _STREAMED:
        return None
    streamed = cast("list[MessageStreamed]", events)
    if any(map(_PARENT, streamed)) or len({event.message_id for event in streamed}) > 1:
        return None
    return _merge_deltas(streamed)


def _join_deltas(events: list[Event | UnknownEvent]) -> Iterator[Event | UnknownEvent]:
    """Join consecutive pieces of a message: the record does not depend on how the text was cut."""
    held: list[MessageStreamed] = []
    for event in events:
        if isinstance(event, MessageStreamed) and not event.parent_tool_call_id:
            if held and held[0].message_id != event.message_id:
                yield _merge_deltas(held)
                held = []
            held.append(event)
            continue
        if held and type(event) in _CHANGES:
            yield _merge_deltas(held)
            held = []
        yield event
    if held:
        yield _merge_deltas(held)


def _merge_deltas(streamed: list[MessageStreamed]) -> MessageStreamed:
    if len(streamed) == 1:
        return streamed[0]
    return replace(streamed[0], delta="".join([event.delta for event in streamed]))


def _extend_range(run: Run, first: int, last: int) -> Run:
    if not first or (run.first_seq and first >= run.first_seq and last <= run.last_seq):
        return run
    first = min(first, run.first_seq) if run.first_seq else first
    return replace(run, first_seq=first, last_seq=max(last, run.last_seq))


def _apply(run: Run, event: Event | UnknownEvent) -> Run:
    change = _CHANGES.get(type(event))
    if change is None or (run.status in TERMINAL and not isinstance(event, ProcessExited)):
        return run
    return change(run, event)


# --- status of the run -------------------------------------------------------------------------


def _apply_run_started(run: Run, event: RunStarted) -> Run:
    status = TRANSITIONS[run.status].get(STATUS_EVENTS[event.type])
    if status is None:  # it has already started
        return run
    return replace(
        run,
        status=status,
        started_at=event.at or None,
        provider_session_id=event.provider_session_id or run.provider_session_id,
        model=event.model,
        cwd=event.cwd,
        permission=event.permission,
        negotiation=event.negotiation,
        credential=event.credential,
        cli_version=event.cli_version,
        resumed_from=event.resumed_from,
        metadata=event.metadata,
    )


def _apply_run_ended(run: Run, event: RunEnded) -> Run:
    status = TRANSITIONS[run.status].get(STATUS_EVENTS[event.type])
    if status is None:
        return run
    ended_at = event.ended_at or event.at or None
    return replace(
        run,
        status=status,
        reason=event.reason,
        detail=event.detail,
        failure=event.failure,
        stop_reason=event.stop_reason or run.stop_reason,
        structured=event.structured,
        interrupted_tools=event.interrupted_tools,
        text="".join(run.partial) or run.text,
        usage=event.usage or run.usage,
        cost=event.cost or run.cost,
        ended_at=ended_at,
        duration=seconds_between(run.started_at, ended_at),
    )


def _apply_process_exited(run: Run, event: ProcessExited) -> Run:
    return replace(
        run,
        exit_code=event.exit_code,
        signal=event.signal,
        forced=event.forced,
        killed_by_os=event.killed_by_os,
        left_running=event.left_running,
    )


def _apply_provider_session(run: Run, event: ProviderSessionUpdated) -> Run:
    return replace(run, provider_session_id=event.provider_session_id)


def _apply_turn_completed(run: Run, event: TurnCompleted) -> Run:
    if event.parent_tool_call_id:
        return run  # a sub-agent's message
    stop_reason = event.stop_reason or run.stop_reason
    return replace(run, turns=run.turns + 1, stop_reason=stop_reason, open_tasks=event.open_tasks)


# --- messages ----------------------------------------------------------------------------------


def _apply_message_sent(run: Run, event: MessageSent) -> Run:
    messages = {key: state for key, state in run.open_messages.items() if key != event.message_id}
    if event.state in {"queued", "unknown"}:
        messages[event.message_id] = event.state
    return replace(run, open_messages=messages)


def _apply_message_streamed(run: Run, event: MessageStreamed) -> Run:
    if event.parent_tool_call_id:
        return run
    before = run.partial if event.message_id == run.partial_id else ()
    return replace(run, partial=_append_text(before, event.delta), partial_id=event.message_id)


def _append_text(pieces: tuple[str, ...], more: str) -> tuple[str, ...]:
    """Append to a text in pieces so that no character is copied more than a few times.

    Each piece is longer than the one after it: a hundred thousand deltas make some seventeen.
    """
    while pieces and len(pieces[-1]) <= len(more):
        more = pieces[-1] + more
        pieces = pieces[:-1]
    return (*pieces, more)


def _apply_message_received(run: Run, event: MessageReceived) -> Run:
    if event.parent_tool_call_id or event.role != "assistant":
        return run
    return replace(run, text=event.content, partial=(), partial_id=None)


def _apply_retry_scheduled(run: Run, event: RetryScheduled) -> Run:
    return replace(run, partial=(), partial_id=None)  # the provider streams the text again


def _apply_image_received(run: Run, event: ImageReceived) -> Run:
    image = Image(media_type=event.media_type, blob=event.blob, bytes=event.bytes)
    return replace(run, images=(*run.images, image))


def _apply_usage(run: Run, event: TokenUsageUpdated) -> Run:
    return replace(run, usage=run.usage + event.usage, cost=_add_cost(run, event))


def _add_cost(run: Run, event: TokenUsageUpdated) -> Cost:
    """Return a run's cost plus new usage: tokens without a price make it partial."""
    added = Cost(usd=event.cost, provenance=event.provenance)
    if added.usd is None:
        return run.cost if event.usage == NOTHING_USED else run.cost + UNKNOWN_COST
    if run.cost == UNKNOWN_COST and run.usage == NOTHING_USED:
        return added
    return run.cost + added


# --- tools -------------------------------------------------------------------------------------


def _count_call(calls: ToolCalls, name: str) -> ToolCalls:
    return replace(calls, count={**calls.count, name: calls.count.get(name, 0) + 1})


def _apply_tool_started(run: Run, event: ToolCallStarted) -> Run:
    if event.tool_call_id in run.open_tools:
        return run
    return replace(
        run,
        tool_calls=_count_call(run.tool_calls, event.tool_name),
        open_tools={**run.open_tools, event.tool_call_id: event.tool_name},
    )


def _apply_tool_ended(run: Run, event: ToolCallEnded) -> Run:
    calls = run.tool_calls
    if event.tool_call_id not in run.open_tools:  # its start was not reported
        calls = _count_call(calls, event.tool_name)
    denied = any(each.tool_call_id == event.tool_call_id for each in run.permission_denials)
    if isinstance(event, ToolCallFailed) and not denied:
        calls = replace(calls, failed=calls.failed + 1)
    still_open = {key: name for key, name in run.open_tools.items() if key != event.tool_call_id}
    return replace(run, tool_calls=calls, open_tools=still_open)


def _apply_approval_requested(run: Run, event: ToolApprovalRequested) -> Run:
    if event.approval_id in run.open_approvals:
        return run
    return replace(run, open_approvals=(*run.open_approvals, event.approval_id))


def _apply_approval_granted(run: Run, event: ToolApprovalGranted) -> Run:
    return replace(run, open_approvals=_without(run.open_approvals, event.approval_id))


def _apply_approval_denied(run: Run, event: ToolApprovalDenied) -> Run:
    denial = PermissionDenial(
        tool_name=event.tool_name,
        tool_call_id=event.tool_call_id,
        reason=event.reason,
        by=event.by,
        summary=tool_summary(event.tool_input) or None,
    )
    return replace(
        run,
        open_approvals=_without(run.open_approvals, event.approval_id),
        permission_denials=(*run.permission_denials, denial),
        tool_calls=replace(run.tool_calls, denied=run.tool_calls.denied + 1),
    )


def _without(approvals: tuple[str, ...], closed: str) -> tuple[str, ...]:
    return tuple(each for each in approvals if each != closed)


# Lookup is by the exact type of the event: there are many types, and most change nothing.
_CHANGES: Final[dict[type[object], Callable[[Run, Any], Run]]] = {
    RunStarted: _apply_run_started,
    RunCompleted: _apply_run_ended,
    RunFailed: _apply_run_ended,
    RunCancelled: _apply_run_ended,
    RunTimedOut: _apply_run_ended,
    RunRateLimited: _apply_run_ended,
    RunPaused: _apply_run_ended,
    ProcessExited: _apply_process_exited,
    ProviderSessionUpdated: _apply_provider_session,
    TurnCompleted: _apply_turn_completed,
    MessageSent: _apply_message_sent,
    MessageStreamed: _apply_message_streamed,
    MessageReceived: _apply_message_received,
    RetryScheduled: _apply_retry_scheduled,
    ImageReceived: _apply_image_received,
    TokenUsageUpdated: _apply_usage,
    ToolCallStarted: _apply_tool_started,
    ToolCallCompleted: _apply_tool_ended,
    ToolCallFailed: _apply_tool_ended,
    ToolApprovalRequested: _apply_approval_requested,
    ToolApprovalGranted: _apply_approval_granted,
    ToolApprovalDenied: _apply_approval_denied,
}
CHANGING: Final = frozenset(_CHANGES)
