"""The frames of an ACP session as events. Pure: no I/O, no clock, no waiting, and no exceptions.

A message is complete when something else follows it: another message, a tool call, or the end of
the turn. A tool call has one start and one result, whatever the order and the kind of its updates.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Final

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from sessionmgr.adapter.kit import undecoded_event
from sessionmgr.model import (
    CompactionCompleted,
    CompactionFailed,
    CompactionStarted,
    ErrorOccurred,
    Failure,
    FailureKind,
    PlanEntry,
    PlanUpdated,
    RawReceived,
    ToolCallUpdated,
    TurnCompleted,
)
from sessionmgr.wire import MalformedFrame, NoiseLine, OversizedFrame, UntypedFrame
from sessionmgr_adapters.acp import frames, updates
from sessionmgr_adapters.acp.decode import as_dict, as_text
from sessionmgr_adapters.acp.messages import chunk_events, complete_message, content_events
from sessionmgr_adapters.acp.state import AcpState, AcpTurn
from sessionmgr_adapters.acp.tool_calls import AcpToolCall, live_output
from sessionmgr_adapters.acp.usage import (
    context_events,
    rate_limit_events,
    turn_usage_events,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.model import Event, Json

MAX_OUTPUT: Final = 100_000
"""Maximum number of characters that are kept of a terminal's output."""
MAX_TERMINALS: Final = 64
"""Maximum number of terminals of which output is kept."""
_OWN_EVENTS: Final = frozenset({"turn_completed", "session_stats_updated"})
"""Events that describe a session as a whole, which of a sub-agent's session are left out."""


def normalise(frame: frames.AcpFrame, state: AcpState) -> list[Event]:
    """Return the events for a frame."""
    match frame:
        case frames.SessionUpdate(session_id=session):
            if state.session and session != state.session:
                return _subagent_events(frame, state)
            return _update_events(frame.update, state)
        case frames.PermissionRequest(
            session_id=session, tool_call=updates.ToolCallUpsert() as call
        ):
            child = state.subagents.get(session)
            if child is None:
                return _tool_call(call, state, is_request=True)
            return _of_subagent(session, _tool_call(call, child, is_request=True))
        case frames.PromptEnded():
            state.turn.end = frame
            return [
                *_close(state),
                *turn_usage_events(frame.usage, frame.meta, state),
                TurnCompleted(stop_reason=frame.stop_reason),
            ]
        case frames.PromptAccepted(message_id=message):
            state.insert(message)
            return []
        case frames.SessionOpened():
            _note_opened(frame, state)
            return []
        case frames.OptionsChanged(options=options):
            state.options = options
            return []
        case UntypedFrame() | MalformedFrame() | NoiseLine() | OversizedFrame():
            return [undecoded_event(frame)]
        case _:
            return []


def begin_turn(state: AcpState) -> None:
    """Record that a prompt is about to be sent."""
    state.has_begun = True
    state.turn = AcpTurn()


def close_turn(state: AcpState) -> list[Event]:
    """Return the events for what a turn leaves unfinished: its message and its tool calls.

    The end of a turn does this. Call it where a turn ends without one, and at the end of a run.
    """
    return _close(state)


def _close(state: AcpState, background: Sequence[Json] = ()) -> list[Event]:
    events = complete_message(state)
    works = [as_dict(each) for each in background]
    kept = {as_text(each.get("toolCallId", each.get("sessionId"))) for each in works}
    for call in [each for each in state.calls.values() if each.id not in kept]:
        del state.calls[call.id]
        state.turn.ended_calls.add(call.id)
        events += call.abandon()
    events += [CompactionFailed() for _ in state.compactions]
    state.compactions.clear()
    for name, each in state.subagents.items():
        if name not in kept:
            events += _of_subagent(name, _close(each))
    return events


def _note_opened(frame: frames.SessionOpened, state: AcpState) -> None:
    state.session = frame.session_id or state.session
    state.is_resumed = frame.method != "session/new"
    state.modes, state.options = frame.modes, frame.options or state.options
    if frame.modes is not None:
        state.mode = frame.modes.current


def _subagent_events(frame: frames.SessionUpdate, state: AcpState) -> list[Event]:
    name = frame.session_id
    child = state.subagents.setdefault(name, AcpState(session=name, images=state.images))
    child.is_replaying, child.has_begun = state.is_replaying, state.has_begun
    return _of_subagent(name, normalise(frame, child))


def _of_subagent(name: str, events: Sequence[Event]) -> list[Event]:
    own = [each for each in events if each.type not in _OWN_EVENTS]
    return [
        replace(each, parent_tool_call_id=name) if each.parent_tool_call_id is UNSET else each
        for each in own
    ]


# --- updates -------------------------------------------------------------------------------------


def _update_events(update: updates.AcpUpdate, state: AcpState) -> list[Event]:
    match update:
        case updates.ModeUpdate(current_mode_id=mode):
            state.mode = mode
            return []
        case updates.ConfigUpdate(options=options):
            state.options = options
            return []
        case updates.ContextUpdate():
            events = context_events(update, state)
            return [] if state.is_replaying else events
        case _ if state.is_replaying:
            return []
        case updates.AgentChunk() | updates.ThoughtChunk() | updates.UserChunk():
            return chunk_events(update, state)
        case updates.AgentContent() | updates.ThoughtContent() | updates.UserContent():
            return content_events(update, state)
        case updates.ToolCallUpsert(tool_call_id=name, capabilities=abilities):
            _note_abilities(name, abilities, state)
            return _tool_call(update, state)
        case updates.ToolContentChunk():
            return _content_chunk(update, state)
        case updates.TerminalChunk(terminal_id=terminal, data=data):
            return terminal_events(terminal, _decoded(data), state)
        case updates.TerminalNews(terminal_id=name, capabilities=abilities):
            _note_abilities(name, abilities, state)
            return _terminal_news(update, state)
        case updates.SubagentUpdate(session_id=name, capabilities=abilities):
            _note_abilities(name, abilities, state)
            return []
        case updates.StateUpdate():
            return _state_events(update, state)
        case _:
            return [*rate_limit_events(update.meta, state), *_session_events(update, state)]


def _session_events(update: updates.AcpUpdate, state: AcpState) -> list[Event]:
    match update:
        case updates.AgentPlan(entries=entries):
            return [PlanUpdated(entries=tuple(map(_plan_entry, entries)))]
        case updates.SessionInfoUpdate(meta=meta) if _reports_error(meta):
            state.turn.has_error = True
            return []
        case updates.PlanRemoved():
            return [PlanUpdated(entries=())]
        case updates.NoticeUpdate():
            return _notice_events(update)
        case updates.CompactionUpdate():
            return _compaction_events(update, state)
        case updates.UnknownUpdate(value=value):
            return [RawReceived(frame=value)]
        case _:  # a preview, or information that events do not have
            return []


def _reports_error(meta: Json) -> bool:
    """Whether an extension, which has the name of an agent, says that the session has failed."""
    found = (as_dict(as_dict(each).get("threadStatus")) for each in as_dict(meta).values())
    return any(each.get("type") == "systemError" for each in found)


def _plan_entry(entry: updates.AcpPlanEntry) -> PlanEntry:
    return PlanEntry(content=entry.content, status=entry.status, priority=entry.priority)


def _notice_events(notice: updates.NoticeUpdate) -> list[Event]:
    message = ": ".join(each for each in (notice.title, notice.description) if each)
    failure = Failure(kind=FailureKind.PROVIDER_ERROR, message=message)
    match notice.severity:
        case "error" | "warning" as severity:
            return [ErrorOccurred(failure=failure, severity=severity)]
        case other:
            return [RawReceived(frame={"notice": message, "severity": other})]


def _compaction_events(update: updates.CompactionUpdate, state: AcpState) -> list[Event]:
    name, status = update.compaction_id, update.status
    if status == "in_progress":
        is_new = name not in state.compactions
        state.compactions.add(name)
        return [CompactionStarted()] if is_new else []
    state.compactions.discard(name)
    if status == "completed":
        return [CompactionCompleted()]
    if not update.error:
        return [CompactionFailed()]
    failure = Failure(kind=FailureKind.PROVIDER_ERROR, message=update.error)
    return [CompactionFailed(), ErrorOccurred(failure=failure, severity="warning")]


def _state_events(update: updates.StateUpdate, state: AcpState) -> list[Event]:
    """Return the events for the end of a turn; an agent may report again that it is idle."""
    before, state.background = state.background, update.background or ()
    if update.state != "idle":
        state.begin_next_turn()
        state.turn.is_running = True
    if before and not state.background:
        state.turn.has_background_ended = True
    if update.state != "idle" or not state.turn.is_running or not state.has_begun:
        return []
    state.turn.is_running, state.turn.end = False, update
    return [
        *_close(state, state.background),
        *turn_usage_events(update.usage, update.meta, state),
        TurnCompleted(stop_reason=update.stop_reason, open_tasks=len(state.background)),
    ]


# --- tools ---------------------------------------------------------------------------------------


def _note_abilities(name: str, abilities: Json | UnsetType, state: AcpState) -> None:
    """Note whether a tool call, a terminal, or a sub-agent can be cancelled."""
    if abilities is UNSET:
        return
    if isinstance(as_dict(abilities).get("cancel"), dict):
        state.cancellable.add(name)
    else:
        state.cancellable.discard(name)


def terminal_events(terminal_id: str, text: str, state: AcpState) -> list[Event]:
    """Return the events for further output of a terminal, which may be one of the client's."""
    if state.is_replaying:
        return []
    state.terminals[terminal_id] = (state.terminals.get(terminal_id, "") + text)[-MAX_OUTPUT:]
    if len(state.terminals) > MAX_TERMINALS:
        del state.terminals[next(iter(state.terminals))]
    call = state.call_of_terminal(terminal_id)
    return [] if call is None else _output_events(call, text)


def _tool_call(
    update: updates.ToolCallUpsert, state: AcpState, *, is_request: bool = False
) -> list[Event]:
    if update.tool_call_id in state.turn.ended_calls:
        return []
    state.note_work()
    state.turn.has_tools = True
    call = state.calls.get(update.tool_call_id)
    is_new = call is None
    events = rate_limit_events(update.meta, state)
    if call is None:
        events += complete_message(state)
        state.turn.is_answered = False
        call = state.calls[update.tool_call_id] = AcpToolCall(update.tool_call_id)
    if is_request:
        call.merge_request(update)
        return events + call.announce()
    call.merge(update)
    if call.is_ready(update, is_new=is_new):
        events += call.announce()
    events += _live_output(call, update.meta, state)
    if call.has_ended:
        return events + _end_call(call, state)
    return events + _output_events(call, call.new_output())


def _live_output(call: AcpToolCall, meta: Json, state: AcpState) -> list[Event]:
    text = live_output(meta)
    shown = call.terminals
    return terminal_events(shown[0], text, state) if shown else _output_events(call, text)


def _end_call(call: AcpToolCall, state: AcpState) -> list[Event]:
    del state.calls[call.id]
    state.turn.ended_calls.add(call.id)
    events = call.end(state.images, state.terminals)
    for name in call.terminals:
        state.terminals.pop(name, None)
    return events


def _content_chunk(update: updates.ToolContentChunk, state: AcpState) -> list[Event]:
    call = state.calls.get(update.tool_call_id)
    if call is None:
        return []
    call.content.append(update.content)
    return _output_events(call, call.new_output())


def _terminal_news(update: updates.TerminalNews, state: AcpState) -> list[Event]:
    """Return the events for a terminal's whole output, of which a part may be known."""
    data = as_dict(None if update.output is UNSET else update.output).get("data")
    if not isinstance(data, str):
        return []
    text, known = _decoded(data), state.terminals.get(update.terminal_id, "")
    if text.startswith(known):
        return terminal_events(update.terminal_id, text[len(known) :], state)
    state.terminals[update.terminal_id] = text[-MAX_OUTPUT:]
    return []


def _output_events(call: AcpToolCall, delta: str) -> list[Event]:
    if not delta or not call.is_announced:
        return []
    return [ToolCallUpdated(tool_call_id=call.id, output_delta=delta)]


def _decoded(data: str) -> str:
    try:
        return base64.b64decode(data).decode(errors="replace")
    except (binascii.Error, ValueError):
        return ""
