"""The transitions of a session's record: the events that each recorder command writes.

Nothing here waits, and nothing takes effect before the commit: what follows from a transition is
put into `AppendBatch.effects`, which the recorder calls once the batch is stored.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

from msgspec import UNSET
from msgspec.structs import replace

from sessionmgr.adapter import Allow, Deny, StopReason
from sessionmgr.manager.append_batch import complete_run_started
from sessionmgr.manager.terminal_events import crash_failure
from sessionmgr.model import (
    TERMINAL,
    EndCause,
    ErrorOccurred,
    Failure,
    FailureKind,
    MessageSent,
    RunEnded,
    RunStarted,
    RunStatus,
    SessionClosed,
    SessionCreated,
    SessionReopened,
    TokenUsageUpdated,
    ToolApprovalDenied,
    ToolApprovalGranted,
    ToolApprovalRequested,
    TurnCompleted,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sessionmgr.adapter import Decision
    from sessionmgr.manager.append_batch import AppendBatch
    from sessionmgr.manager.inbox import EventBatch
    from sessionmgr.manager.lazy_event import LazyEvent
    from sessionmgr.manager.pending_approval import PendingApproval
    from sessionmgr.manager.run_state import DeliveryState, RunState, TurnMessage
    from sessionmgr.model import Event, Negotiation, Session


RUN_IS_OVER: Final = Deny(reason="the run is over", by="default")
MessageState: TypeAlias = Literal["queued", "sent", "dropped", "unknown"]


# Events with consequences beyond their row. Of all others there may be thousands a second.
_CONSEQUENTIAL: Final = frozenset(
    {RunStarted, TokenUsageUpdated, TurnCompleted, *RunEnded.__subclasses__()}
)


class CommitEffects(Protocol):
    """The effects that follow a commit; `Recorder` implements them."""

    def notify_waiter(self, waiter: LazyEvent) -> None: ...  # noqa: D102
    def launch(self, run: RunState) -> None: ...  # noqa: D102
    def start_next_run(self, left: RunState) -> None: ...  # noqa: D102
    def limit_task_end(self, run: RunState) -> None: ...  # noqa: D102
    def end(self, run: RunState, stop: StopReason) -> None: ...  # noqa: D102
    def start_deciding(self, run: RunState, question: PendingApproval) -> None: ...  # noqa: D102
    def resolve_approval(  # noqa: D102
        self, run: RunState, question: PendingApproval, decision: Decision
    ) -> None: ...
    def deliver(self, message: TurnMessage) -> None: ...  # noqa: D102


class RecordedSession(Protocol):
    """The session whose record changes; `SessionState` implements it."""

    session: Session
    closing: bool

    @property
    def runs(self) -> Mapping[str, RunState]: ...  # noqa: D102
    @property
    def is_busy(self) -> bool: ...  # noqa: D102


class RecordTransitions:
    """The transitions of one session: one method for each command and for batches of events."""

    __slots__ = ("_live", "_recorder")

    def __init__(self, live: RecordedSession, recorder: CommitEffects) -> None:
        self._live: Final = live
        self._recorder: Final = recorder
        """Its methods are the effects after the commit."""

    def session_idle(self, _draft: AppendBatch) -> None:
        """Write nothing: the command reports only that the session is idle."""

    # --- start and end of a run ------------------------------------------------------------------

    def run_admitted(self, draft: AppendBatch, entry: RunState, is_current: bool) -> None:
        """Write the admission of a run; dispatch it if it is the active one."""
        if draft.seq == 0:
            draft.write(None, SessionCreated())
        if self._live.session.state == "closed":  # it takes no other event
            self._live.session = replace(self._live.session, state="open", closed_at=None)
            draft.reopens = True
            draft.write(None, SessionReopened())
        draft.effects.append(partial(self._recorder.notify_waiter, entry.admitted))
        if is_current and entry.is_active:
            self.run_dispatched(draft, entry)
            return
        draft.write(entry, _prompt_event(entry, "queued"))
        if is_current:
            self.task_not_started(draft, entry)
        else:
            draft.effects.append(partial(self._recorder.start_next_run, entry))

    def run_dispatched(self, draft: AppendBatch, entry: RunState) -> None:
        """Write that the prompt is sent, before it is; end a run that was stopped before that."""
        if entry.is_active:
            draft.write(entry, _prompt_event(entry, "sent"))
            draft.effects.append(partial(self._recorder.launch, entry))
        else:
            self.task_not_started(draft, entry)

    def task_not_started(self, draft: AppendBatch, entry: RunState, why: str = "") -> None:
        """End a run whose prompt never reached the provider."""
        failure = Failure(kind=FailureKind.ADAPTER_CRASHED, message=why, retryable=True)
        entry.conclude(StopReason(cause=EndCause.ADAPTER_CRASH, failure=failure))
        if draft.fold(entry).status not in TERMINAL:
            draft.write(entry, _prompt_event(entry, "dropped"))
        self._end_run(draft, entry)
        draft.effects.append(partial(self._recorder.start_next_run, entry))

    def events_received(self, draft: AppendBatch, arrived: EventBatch) -> None:
        """Write the events of one read from a provider."""
        draft.size += arrived.size
        entry = self._live.runs.get(arrived.run.run_id)
        if entry is None:
            return  # the record of the run is closed
        draft.blobs += arrived.blobs
        events = arrived.events
        if _CONSEQUENTIAL.isdisjoint(map(type, events)):  # as in nearly all reads
            self._write_events(draft, entry, events)
            return
        begin = 0
        for end, event in enumerate(events):
            if type(event) in _CONSEQUENTIAL:
                self._write_events(draft, entry, events[begin:end])
                self._write_consequential(draft, entry, event)
                begin = end + 1
        self._write_events(draft, entry, events[begin:])

    def _write_events(self, draft: AppendBatch, entry: RunState, events: tuple[Event, ...]) -> None:
        if events:
            entry.in_turn = True
            draft.write(entry, *events)

    def _write_consequential(self, draft: AppendBatch, entry: RunState, event: Event) -> None:
        match event:
            case RunEnded():
                self._deny_open_approvals(draft, entry)
                if draft.ended_by_provider(entry, event):
                    draft.effects.append(partial(self._recorder.limit_task_end, entry))
            case RunStarted():
                draft.write(entry, complete_run_started(entry, event))
            case TokenUsageUpdated():
                draft.write(entry, event)
                self._enforce_budget(draft, entry)
            case TurnCompleted():
                entry.in_turn = bool(event.parent_tool_call_id)
                draft.write(entry, event)
            case _:
                raise TypeError(f"nothing follows from {event!r}")

    def negotiation_narrowed(
        self, draft: AppendBatch, entry: RunState, negotiation: Negotiation
    ) -> None:
        """Write which capabilities the run lacks from now on."""
        known, entry.negotiation = entry.negotiation, negotiation
        if draft.fold(entry).status is not RunStatus.RUNNING:
            return
        for less in negotiation.degraded:
            if less not in known.degraded:
                failure = Failure(kind=FailureKind.CAPABILITY_MISSING, message=less.why)
                draft.write(entry, ErrorOccurred(failure=failure, severity="warning"))

    def _enforce_budget(self, draft: AppendBatch, entry: RunState) -> None:
        run, budget = draft.fold(entry), entry.spec.budget
        tokens = run.usage.input + run.usage.cache_write + run.usage.output
        if budget.usd is not None and (run.cost.usd or 0.0) >= budget.usd:
            left = "" if budget.usd == entry.plan.wish.budget.usd else " that was left"
            detail = f"{run.cost.usd:.4f} usd used of {budget.usd:g}{left}"
        elif budget.tokens is not None and tokens >= budget.tokens:
            left = "" if budget.tokens == entry.plan.wish.budget.tokens else " that were left"
            detail = f"{tokens} tokens used of {budget.tokens}{left}"
        else:
            return
        stop = StopReason(cause=EndCause.BUDGET, detail=detail)
        draft.effects.append(partial(self._recorder.end, entry, stop))

    def run_stopped(self, draft: AppendBatch, entry: RunState) -> None:
        """Note the tools that run while the manager ends the run."""
        # After an interrupt the agent ends these calls and reports them as failed.
        entry.stopped_in = tuple(dict.fromkeys(draft.fold(entry).open_tools.values()))

    def task_abandoned(self, draft: AppendBatch, entry: RunState) -> None:
        """Write the end of a run whose task does not return."""
        self._end_run(draft, entry)
        draft.effects.append(partial(self._recorder.start_next_run, entry))

    def task_ended(self, draft: AppendBatch, entry: RunState, error: BaseException | None) -> None:
        """Write the end of a run whose task has ended."""
        if entry.id not in self._live.runs:
            return  # the record of the run is closed
        failure = crash_failure(error)
        ours = entry.conclude(StopReason(cause=EndCause.ADAPTER_CRASH, failure=failure))
        if isinstance(error, Exception) and not ours:  # it was ending anyway
            draft.write(entry, ErrorOccurred(failure=failure))
        self._end_run(draft, entry)
        draft.effects.append(partial(self._recorder.start_next_run, entry))

    def _end_run(self, draft: AppendBatch, entry: RunState) -> None:
        assert entry.stop is not None
        self._deny_open_approvals(draft, entry)
        draft.end(entry, entry.stop)

    def _deny_open_approvals(self, draft: AppendBatch, entry: RunState) -> None:
        """Deny the open approval requests of a run that ends."""
        for question in entry.questions.values():
            if draft.fold(entry).status not in TERMINAL:
                self.approval_decided(draft, entry, question, RUN_IS_OVER)
            elif question.decision is None:
                self._resolve_approval(draft, entry, question, RUN_IS_OVER)

    def session_closed(self, draft: AppendBatch, written: LazyEvent | None = None) -> None:
        """Close the session if it has no runs; else the end of its last run closes it."""
        live = self._live
        live.closing = True
        if not live.is_busy and live.session.state == "open":
            live.session = replace(live.session, state="closed", closed_at=draft.at)
            draft.write(None, SessionClosed())
            draft.closes = True
        if written is not None:
            draft.effects.append(partial(self._recorder.notify_waiter, written))

    def events_noted(self, draft: AppendBatch, entry: RunState, events: tuple[Event, ...]) -> None:
        """Write events of the manager itself about a run."""
        draft.write(entry, *events)

    # --- approvals -------------------------------------------------------------------------------

    def approval_requested(
        self, draft: AppendBatch, entry: RunState, question: PendingApproval
    ) -> None:
        """Write an approval request, unless the run is over."""
        if entry.id not in self._live.runs:
            return  # the record of the run is closed
        if draft.is_over or draft.fold(entry).status in TERMINAL:
            # A request that cannot be stored, or whose run is over, reaches no approver.
            self._resolve_approval(draft, entry, question, RUN_IS_OVER)
            return
        request = question.request
        draft.write(
            entry,
            ToolApprovalRequested(
                approval_id=request.approval_id,
                tool_call_id=request.tool_call_id,
                tool_name=request.tool_name,
                tool_input=request.tool_input,
                reason=request.reason,
                timeout=question.timeout,
            ),
        )
        draft.effects.append(partial(self._recorder.start_deciding, entry, question))

    def approval_withdrawn(
        self, draft: AppendBatch, entry: RunState, question: PendingApproval
    ) -> None:
        """Write that the provider has withdrawn an approval request."""
        if entry.id not in self._live.runs:
            return  # the record of the run is closed
        request = question.request
        if request.approval_id not in draft.fold(entry).open_approvals:
            return  # decided before the withdrawal
        draft.write(
            entry,
            ToolApprovalDenied(
                approval_id=request.approval_id,
                tool_call_id=request.tool_call_id,
                tool_name=request.tool_name,
                tool_input=request.tool_input,
                reason="the provider no longer wants to know",
                by="provider",
            ),
        )

    def approval_decided(
        self, draft: AppendBatch, entry: RunState, question: PendingApproval, decision: Decision
    ) -> None:
        """Write a decision, before the provider gets it."""
        request, run = question.request, draft.fold(entry)
        if request.approval_id not in run.open_approvals or run.status in TERMINAL:
            return  # withdrawn, or the run is over
        if entry.questions.get(request.approval_id) is not question:
            return  # the decision is for an earlier request with the same id
        if isinstance(decision, Allow) and not entry.is_active:
            decision = RUN_IS_OVER
        tool_input = request.tool_input
        if isinstance(decision, Allow) and decision.tool_input is not UNSET:
            tool_input = decision.tool_input
        of = ToolApprovalGranted if isinstance(decision, Allow) else ToolApprovalDenied
        draft.write(
            entry,
            of(
                approval_id=request.approval_id,
                tool_call_id=request.tool_call_id,
                tool_name=request.tool_name,
                tool_input=tool_input,
                reason=decision.reason,
                by=decision.by,
            ),
        )
        self._resolve_approval(draft, entry, question, decision)

    def _resolve_approval(
        self, draft: AppendBatch, entry: RunState, question: PendingApproval, decision: Decision
    ) -> None:
        draft.effects.append(partial(self._recorder.resolve_approval, entry, question, decision))

    # --- messages to the running turn ------------------------------------------------------------

    def message_appended(self, draft: AppendBatch, message: TurnMessage) -> None:
        """Write a message to the running turn, before it is sent, unless the run is over."""
        entry = message.entry
        if draft.fold(entry).status in TERMINAL:
            draft.effects.append(partial(self._recorder.notify_waiter, message.written))
            return
        entry.undelivered[message.message_id] = message.content
        draft.write(entry, _follow_up_event(message, "queued"))
        draft.effects.append(partial(self._recorder.deliver, message))

    def message_delivered(
        self, draft: AppendBatch, message: TurnMessage, delivery: DeliveryState
    ) -> None:
        """Write the delivery state of a message, unless the run's end or the adapter did."""
        entry = message.entry
        entry.undelivered.pop(message.message_id, None)
        if draft.fold(entry).open_messages.get(message.message_id) not in {None, delivery}:
            draft.write(entry, _follow_up_event(message, delivery))
        draft.effects.append(partial(self._recorder.notify_waiter, message.written))


def _follow_up_event(message: TurnMessage, state: MessageState) -> MessageSent:
    return MessageSent(
        message_id=message.message_id, content=message.content, follow_up=True, state=state
    )


def _prompt_event(entry: RunState, state: MessageState) -> MessageSent:
    return MessageSent(
        message_id=entry.message_id,
        content=entry.spec.prompt,
        follow_up=entry.follow_up,
        state=state,
    )
