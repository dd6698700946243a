"""What each kind of news makes of a session's record: news in, a draft out, and nothing waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from msgspec import UNSET
from msgspec.structs import replace

from sessionmgr.adapter.question import Allow, Deny
from sessionmgr.adapter.run_control import Arrived, Asked, Stop, Withdrawn
from sessionmgr.manager import news
from sessionmgr.manager.draft import crashed, started
from sessionmgr.manager.effect import Answer, Decide, EndRun, Launch, Next, Steer, Tell, WindDown
from sessionmgr.model import (
    TERMINAL,
    Cause,
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
    from sessionmgr.adapter.run_control import Question, RunControl
    from sessionmgr.manager.draft import Draft
    from sessionmgr.manager.live import Live
    from sessionmgr.manager.run_state import RunState
    from sessionmgr.model import Event, Negotiation


RUN_IS_OVER: Final = Deny(reason="the run is over", by="default")
State: TypeAlias = Literal["queued", "sent", "dropped", "unknown"]


# What more than a row follows from; of anything else there may be thousands.
_CONSEQUENTIAL: Final = frozenset(
    {RunStarted, TokenUsageUpdated, TurnCompleted, *RunEnded.__subclasses__()}
)


class Scribe:
    """Drafts the record of one session."""

    __slots__ = ("_live",)

    def __init__(self, live: Live) -> None:
        self._live: Final = live

    def take(self, draft: Draft, item: object) -> None:
        """Add to the draft what follows from one piece of news."""
        if isinstance(item, Arrived):
            draft.size += item.size
        match item:
            case (
                Arrived(run=run)
                | news.Stopped(entry=run)
                | news.TaskEnded(entry=run)
                | Asked(run=run)
                | Withdrawn(run=run)
            ) if run.run_id not in self._live.entries:
                pass  # of a run whose record is closed
            case Arrived(run=run, events=events):
                draft.blobs += item.blobs
                self._arrived(draft, self._entry(run), events)
            case news.Admitted(entry=entry, has_turn=has_turn):
                self._admitted(draft, entry, has_turn)
            case news.Dispatching(entry=entry):
                self._dispatch(draft, entry)
            case news.NotLaunched(entry=entry, why=why):
                self._not_launched(draft, entry, why)
            case news.Stopped(entry=entry):
                # After an interrupt the agent ends these calls and reports them as failed.
                entry.stopped_in = tuple(dict.fromkeys(draft.fold(entry).open_tools.values()))
            case news.TaskEnded(entry=entry, error=error):
                self._task_ended(draft, entry, error)
            case news.Overdue(entry=entry):
                self._end(draft, entry)
                draft.effects.append(Next(entry))
            case Asked(run=run, question=question):
                self._asked(draft, self._entry(run), question)
            case Withdrawn(run=run, question=question):
                self._withdrawn(draft, self._entry(run), question)
            case news.Decided():
                self._decided(draft, item)
            case news.FollowUpSent() if draft.fold(item.entry).status in TERMINAL:
                draft.effects.append(Tell(item.written))  # there is no turn for it any more
            case news.FollowUpSent():
                self._follow_up(draft, item, "queued")
                draft.effects.append(Steer(item))
            case news.FollowUpFate():
                self._follow_up(draft, item.sent, item.fate)
                draft.effects.append(Tell(item.sent.written))
            case news.Noted(entry=entry, events=events):
                draft.write(entry, *events)
            case news.Narrowed(entry=entry, negotiation=negotiation):
                self._narrowed(draft, entry, negotiation)
            case news.Closing(written=written):
                self._close(draft)
                if written is not None:
                    draft.effects.append(Tell(written))
            case news.Quiet():
                pass
            case _:
                raise TypeError(f"no news: {item!r}")

    def _entry(self, run: RunControl) -> RunState:
        return self._live.entries[run.run_id]

    # --- how a run comes and goes ----------------------------------------------------------------

    def _admitted(self, draft: Draft, entry: RunState, has_turn: bool) -> None:
        if draft.seq == 0:
            draft.write(None, SessionCreated())
        if self._live.session.state == "closed":  # a closed session accepts nothing else
            self._live.session = replace(self._live.session, state="open", closed_at=None)
            draft.reopens = True
            draft.write(None, SessionReopened())
        draft.effects.append(Tell(entry.admitted))
        if has_turn and entry.is_on:
            self._dispatch(draft, entry)
            return
        draft.write(entry, _message(entry, "queued"))
        if has_turn:
            self._not_launched(draft, entry)
        else:
            draft.effects.append(Next(entry))

    def _dispatch(self, draft: Draft, entry: RunState) -> None:
        """Say that a prompt is on its way, before it is; but not if it shall not be any more."""
        if entry.is_on:
            draft.write(entry, _message(entry, "sent"))
            draft.effects.append(Launch(entry))
        else:
            self._not_launched(draft, entry)

    def _not_launched(self, draft: Draft, entry: RunState, why: str = "") -> None:
        """End a run that never came to its provider."""
        failure = Failure(kind=FailureKind.ADAPTER_CRASHED, message=why, retryable=True)
        entry.conclude(Stop(cause=Cause.ADAPTER_CRASH, failure=failure))
        entry.drop()
        if draft.fold(entry).status not in TERMINAL:
            draft.write(entry, _message(entry, "dropped"))
        self._end(draft, entry)
        draft.effects.append(Next(entry))

    def _arrived(self, draft: Draft, entry: RunState, events: tuple[Event, ...]) -> None:
        if _CONSEQUENTIAL.isdisjoint(map(type, events)):  # as in nearly all reads
            self._plain(draft, entry, events)
            return
        begin = 0
        for end, event in enumerate(events):
            if type(event) in _CONSEQUENTIAL:
                self._plain(draft, entry, events[begin:end])
                self._consequential(draft, entry, event)
                begin = end + 1
        self._plain(draft, entry, events[begin:])

    def _plain(self, draft: Draft, entry: RunState, events: tuple[Event, ...]) -> None:
        if events:
            entry.in_turn = True
            draft.write(entry, *events)

    def _consequential(self, draft: Draft, entry: RunState, event: Event) -> None:
        match event:
            case RunEnded():
                self._deny_the_rest(draft, entry)
                if draft.ended_by_provider(entry, event):
                    draft.effects.append(WindDown(entry))
            case RunStarted():
                draft.write(entry, started(entry, event))
            case TokenUsageUpdated():
                draft.write(entry, event)
                self._spend(draft, entry)
            case TurnCompleted():
                entry.in_turn = bool(event.parent_tool_call_id)
                draft.write(entry, event)
            case _:
                raise TypeError(f"nothing follows from {event!r}")

    def _narrowed(self, draft: Draft, entry: RunState, negotiation: Negotiation) -> None:
        """Have the record say what the run has to do without, at its start or now."""
        known, entry.negotiation = entry.negotiation, negotiation
        if draft.fold(entry).status is not RunStatus.RUNNING:
            return
        for less in negotiation.degraded:
            if less not in known.degraded:
                failure = Failure(kind=FailureKind.CAPABILITY_MISSING, message=less.why)
                draft.write(entry, ErrorOccurred(failure=failure, severity="warning"))

    def _spend(self, draft: Draft, entry: RunState) -> None:
        run, budget = draft.fold(entry), entry.spec.budget
        tokens = run.usage.input + run.usage.cache_write + run.usage.output
        if budget.usd is not None and (run.cost.usd or 0.0) >= budget.usd:
            left = "" if budget.usd == entry.wish.budget.usd else " that was left"
            detail = f"{run.cost.usd:.4f} usd used of {budget.usd:g}{left}"
        elif budget.tokens is not None and tokens >= budget.tokens:
            left = "" if budget.tokens == entry.wish.budget.tokens else " that were left"
            detail = f"{tokens} tokens used of {budget.tokens}{left}"
        else:
            return
        draft.effects.append(EndRun(entry, Stop(cause=Cause.BUDGET, detail=detail)))

    def _task_ended(self, draft: Draft, entry: RunState, error: BaseException | None) -> None:
        failure = crashed(error)
        ours = entry.conclude(Stop(cause=Cause.ADAPTER_CRASH, failure=failure))
        if isinstance(error, Exception) and not ours:  # it crashed, and had ended for another cause
            draft.write(entry, ErrorOccurred(failure=failure))
        self._end(draft, entry)
        draft.effects.append(Next(entry))

    def _end(self, draft: Draft, entry: RunState) -> None:
        assert entry.stop is not None
        self._deny_the_rest(draft, entry)
        draft.end(entry, entry.stop)

    def _deny_the_rest(self, draft: Draft, entry: RunState) -> None:
        """Let nobody wait for an answer in a run that ends."""
        for question in entry.questions.values():
            if draft.fold(entry).status not in TERMINAL:
                self._decided(draft, news.Decided(entry, question, RUN_IS_OVER))
            elif question.decision is None:
                draft.effects.append(Answer(news.Decided(entry, question, RUN_IS_OVER)))

    def _close(self, draft: Draft) -> None:
        live = self._live
        live.closing = True
        if not live.is_busy and live.session.state == "open":
            live.session = replace(live.session, state="closed", closed_at=draft.at)
            draft.write(None, SessionClosed())
            draft.closes = True

    # --- questions -------------------------------------------------------------------------------

    def _asked(self, draft: Draft, entry: RunState, question: Question) -> None:
        if draft.is_over or draft.fold(entry).status in TERMINAL:
            # What cannot be stored is not asked, and neither is what is of no use any more.
            draft.effects.append(Answer(news.Decided(entry, question, RUN_IS_OVER)))
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
            ),
        )
        draft.effects.append(Decide(entry, question))

    def _withdrawn(self, draft: Draft, entry: RunState, question: Question) -> None:
        request = question.request
        if request.approval_id not in draft.fold(entry).open_approvals:
            return  # answered meanwhile
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

    def _decided(self, draft: Draft, decided: news.Decided) -> None:
        request, decision = decided.question.request, decided.decision
        run, course = draft.fold(decided.entry), decided.entry
        if request.approval_id not in run.open_approvals or run.status in TERMINAL:
            return  # withdrawn meanwhile, or nobody is left who wants to know
        if course.questions.get(request.approval_id) is not decided.question:
            return  # it is about a former question of that name
        if isinstance(decision, Allow) and course.stop is not None:
            decided = news.Decided(decided.entry, decided.question, RUN_IS_OVER)
            decision = RUN_IS_OVER
        tool_input = request.tool_input
        if isinstance(decision, Allow) and decision.tool_input is not UNSET:
            tool_input = decision.tool_input
        of = ToolApprovalGranted if isinstance(decision, Allow) else ToolApprovalDenied
        draft.write(
            decided.entry,
            of(
                approval_id=request.approval_id,
                tool_call_id=request.tool_call_id,
                tool_name=request.tool_name,
                tool_input=tool_input,
                reason=decision.reason,
                by=decision.by,
            ),
        )
        draft.effects.append(Answer(decided))

    # --- messages to a run that is on ------------------------------------------------------------

    def _follow_up(self, draft: Draft, sent: news.FollowUpSent, state: State) -> None:
        if state == "queued":
            sent.entry.undelivered[sent.message_id] = sent.content
        else:
            sent.entry.undelivered.pop(sent.message_id, None)
            if draft.fold(sent.entry).open_messages.get(sent.message_id) == state:
                return  # that has been said, at the run's end
        draft.write(
            sent.entry,
            MessageSent(
                message_id=sent.message_id, content=sent.content, follow_up=True, state=state
            ),
        )


def _message(entry: RunState, state: State) -> MessageSent:
    return MessageSent(
        message_id=entry.message_id,
        content=entry.spec.prompt,
        follow_up=entry.follow_up,
        state=state,
    )
