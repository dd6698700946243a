"""`codex exec`'s frames to events. Pure: no I/O, no clock, nothing that waits, nothing raised.

Nothing is streamed here: a message comes whole. Reasoning is told when it comes and is no part of
what the agent says. What the run ends with is the state's `result`, and for others to tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sessionmgr.adapter.kit.undecoded import told
from sessionmgr.model import (
    ErrorOccurred,
    Failure,
    FailureKind,
    MessageReceived,
    PlanEntry,
    PlanUpdated,
    ProviderSessionUpdated,
    ReasoningReceived,
    RetryScheduled,
    RunStarted,
    ToolCallCompleted,
    ToolCallFailed,
    ToolCallStarted,
    TurnCompleted,
)
from sessionmgr_adapters.codex.exec import frames
from sessionmgr_adapters.codex.exec.errors import cleaned, retried, turn_failure
from sessionmgr_adapters.codex.tool_items import PATCH, SHELL, bare

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.model import Event, Json, Permission
    from sessionmgr.wire import NoFrame
    from sessionmgr_adapters.codex.exec.frames import Call, Counts, Frame, Item

SEARCH: Final = "web_search"


class State:
    """What must be remembered from one frame to the next."""

    def __init__(self, permission: Permission | None = None, model: str | None = None) -> None:
        self.permission: Final = permission
        """What is in force, if that is not what was settled before."""
        self.model: Final = model
        """Which model was asked for: it does not say which one it takes."""
        self.thread: str | None = None
        self.has_turn = False
        """Whether a turn was begun on it."""
        self.answer: str | None = None
        """What the agent has said last."""
        self.counts: Counts | None = None
        self.is_over = False
        self.failure: Failure | None = None
        """What the turn failed with."""
        self.retried: str | None = None
        """What was tried again last; nothing once the model has answered."""
        self.complaint: str | None = None
        """What went wrong last, whether a turn's end has come of it or not."""
        self.calls: Final[set[str]] = set()
        """Calls that were begun and are not over."""
        self.todo: tuple[PlanEntry, ...] = ()


def normalise(frame: Frame | NoFrame, state: State) -> Sequence[Event]:
    """Return the events that a frame is; none if it is not about what happens in the run."""
    match frame:
        case frames.ThreadStarted(thread_id=thread):
            return _begun(thread, state)
        case frames.TurnStarted():
            state.has_turn = True
            return ()
        case frames.ItemStarted(item=item) | frames.ItemUpdated(item=item):
            return _under_way(item, state)
        case frames.ItemCompleted(item=item):
            return _done(item, state)
        case frames.TurnCompleted(usage=counts):
            state.is_over, state.counts = True, counts
            return [TurnCompleted(stop_reason="completed")]
        case frames.TurnFailed(error=complaint):
            state.is_over = True
            state.failure = turn_failure(complaint.message, before=state.retried)
            return [TurnCompleted(stop_reason="failed")]
        case frames.Error(message=message):
            return _went_wrong(message, state)
        case _:
            return [told(frame)]


def _begun(thread: str, state: State) -> Sequence[Event]:
    before, state.thread = state.thread, thread
    if before is None:
        return [
            RunStarted(provider_session_id=thread, permission=state.permission, model=state.model)
        ]
    return [ProviderSessionUpdated(provider_session_id=thread)] if before != thread else ()


def _went_wrong(message: str, state: State) -> Sequence[Event]:
    again = retried(message)
    if again is None:
        state.complaint = message  # the turn fails with it next
        return ()
    attempt, failure = again
    state.retried = failure.message
    return [RetryScheduled(by="provider", attempt=attempt, failure=failure)]


# --- items ---------------------------------------------------------------------------------------


def _under_way(item: Item, state: State) -> Sequence[Event]:
    match item:
        case frames.TodoList():
            return _planned(item, state)
        case _ if isinstance(item, frames.Call):
            return _start(item, state)
        case _:
            return ()  # it is told when it is whole


def _done(item: Item, state: State) -> Sequence[Event]:
    match item:
        case frames.AgentMessage(id=name, text=text) | frames.Plan(id=name, text=text):
            state.answer, state.retried = text, None
            return [MessageReceived(content=text, message_id=name)] if text else ()
        case frames.Reasoning(text=text):
            return [ReasoningReceived(content=text)] if text else ()
        case frames.TodoList():
            return _planned(item, state)
        case frames.Notice(message=message):
            failure = Failure(kind=FailureKind.PROVIDER_ERROR, message=cleaned(message))
            return [ErrorOccurred(failure=failure, severity="warning")]
        case _:
            return [*_start(item, state), _end(item, state)]


def _planned(item: frames.TodoList, state: State) -> Sequence[Event]:
    entries = tuple(
        PlanEntry(content=each.text, status="completed" if each.completed else "pending")
        for each in item.items
    )
    if entries == state.todo:
        return ()
    state.todo = entries
    return [PlanUpdated(entries=entries)]


def _start(item: Call, state: State) -> Sequence[Event]:
    if item.id in state.calls:
        return ()
    state.calls.add(item.id)
    state.retried = None
    name, given = _call(item)
    return [ToolCallStarted(tool_call_id=item.id, tool_name=name, tool_input=given)]


def _end(item: Call, state: State) -> Event:
    state.calls.discard(item.id)
    name, given = _call(item)
    went_well = isinstance(item, frames.WebSearch) or item.status == "completed"
    ended = ToolCallCompleted if went_well else ToolCallFailed
    return ended(tool_call_id=item.id, tool_name=name, tool_input=given, tool_output=_output(item))


def _call(item: Call) -> tuple[str, Json]:
    """Return the name of a tool, and what it is given."""
    match item:
        case frames.Execution(command=command):
            return SHELL, {"command": bare(command)}
        case frames.FileChange(changes=changes):
            return PATCH, {"changes": changes}
        case frames.McpCall(server=server, tool=tool, arguments=arguments):
            return f"mcp__{server}__{tool}", arguments
        case frames.AgentCall(tool=tool, prompt=prompt, receiver_thread_ids=threads):
            return tool, {"prompt": prompt, "threads": list(threads)}
        case frames.WebSearch(query=query, action=action):
            return SEARCH, {"query": query, "action": action}


def _output(item: Call) -> Json:
    match item:
        case frames.Execution(aggregated_output=output, exit_code=code):
            return {"output": output, "exit_code": code}
        case frames.McpCall(result=result, error=error):
            return result if error is None else error
        case frames.FileChange(status=status):
            return status
        case frames.AgentCall(agents_states=states):
            return states
        case frames.WebSearch():
            return None
