"""One run, from its admission until its task has ended: what it is to do, and how far it is.

Its phase is written by the methods here, which the session's recorder and the commands that it
hands out call; each takes a step of the table in `run_phase`. The record (`RunState.run`) is
adopted from what is stored, so it may be behind the phase while the store is slow, and is never
ahead of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import inf
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

import msgspec
import trio
from msgspec.structs import replace

from sessionmgr.adapter import StopReason
from sessionmgr.manager.delta_redaction import RunStreams
from sessionmgr.manager.lazy_event import LazyEvent
from sessionmgr.manager.run_phase import TRANSITIONS, RunPhase, RunStep
from sessionmgr.model import TERMINAL, EndCause, IllegalTransition, Run, reduce_all

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sessionmgr.adapter import ApprovalRequest, Decision, ProviderAdapter, RunContext
    from sessionmgr.manager.inbox import Inbox
    from sessionmgr.manager.pause_snapshot import PauseOrder
    from sessionmgr.manager.pending_approval import PendingApproval
    from sessionmgr.manager.run_plan import RunPlan
    from sessionmgr.model import AnyEvent, Event, Negotiation, Session
    from sessionmgr.otp import TaskHandle as Task, TaskSupervisor
    from sessionmgr.store import Redactor

COUNTED_TOGETHER: Final = 64
"""So many previews are counted by the record at once."""


MessageFate: TypeAlias = Literal["sent", "dropped", "unknown"]
"""What can become of a message to a running turn."""


class TurnMessage(msgspec.Struct):
    """A message to the running turn, which is given to it once it is stored."""

    entry: RunState
    message_id: str
    content: str
    written: LazyEvent
    is_begun: bool = False
    """Whether the provider may have it."""
    fate: MessageFate | None = None
    """What became of it; None for good, if its recorder died meanwhile."""


class RunTimer(Protocol):
    """The timer that enforces the timeouts of runs."""

    def watch_run(self, run: RunState) -> None:
        """Compute anew when a run has to be examined next."""


class RunCommands(Protocol):
    """The commands about a run that its session's recorder accepts; `RecorderCommands` has them."""

    def stop(self, run: RunState) -> None: ...  # noqa: D102
    def task_ended(self, run: RunState, error: BaseException | None) -> None: ...  # noqa: D102
    def task_not_started(self, run: RunState, why: str) -> None: ...  # noqa: D102
    def task_abandoned(self, run: RunState) -> None: ...  # noqa: D102
    def request_approval(self, run: RunState, question: PendingApproval) -> None: ...  # noqa: D102
    def withdraw_approval(self, run: RunState, question: PendingApproval) -> None: ...  # noqa: D102
    def decide_approval(  # noqa: D102
        self, run: RunState, question: PendingApproval, decision: Decision
    ) -> None: ...
    def append_message(self, message: TurnMessage) -> None: ...  # noqa: D102
    def record_events(self, run: RunState, *events: Event) -> None: ...  # noqa: D102
    def narrow_negotiation(self, run: RunState, negotiation: Negotiation) -> None: ...  # noqa: D102


class RunSession(Protocol):
    """The session of a run, as the run and its supervision see it; `SessionState` has it all."""

    session: Session
    provider_session_id: str | None
    redactor: Redactor
    last_seq: int
    committing_since: float | None

    @property
    def inbox(self) -> Inbox: ...  # noqa: D102
    @property
    def commands(self) -> RunCommands: ...  # noqa: D102
    @property
    def active(self) -> RunState | None: ...  # noqa: D102
    def add_waiter(self, event: LazyEvent) -> LazyEvent: ...  # noqa: D102


class RunState(ABC):
    """One run: its wish, its phase, its record, and what its adapter and its handles share."""

    __slots__ = (
        *("_previews", "_recall", "_record", "_timeouts", "abandon_at", "admitted", "context"),
        *("dispatched_at", "due", "ended", "explained", "follow_up", "gone", "grace", "in_turn"),
        *("inbox", "interruption", "last_sign", "message_id", "negotiation", "pause", "phase"),
        *("plan", "played", "provider", "questions", "run_id", "seen", "session_id"),
        *("session_state", "spec", "stop", "stopped_at", "stopped_in", "streams", "task"),
        *("undelivered", "warned_at", "warned_of_deadline", "watch_number", "watched_until"),
    )

    def __init__(
        self,
        plan: RunPlan,
        *,
        live: RunSession,
        timeouts: RunTimer,
        run_id: str,
        message_id: str,
        follow_up: bool = False,
    ) -> None:
        session = live.session
        self.run_id: Final = run_id
        self.session_id: Final[str] = session.id
        self.provider: Final[str] = session.provider
        self.inbox: Final[Inbox] = live.inbox
        self.grace: Final[float] = plan.clocks.of("close")
        """How many seconds a provider has to end by itself when it is interrupted."""
        self.stop: StopReason | None = None
        """Why the run ends: the first reason wins."""
        self.stopped_at = 0.0
        """When that was said, by trio's clock."""
        self.questions: Final[dict[str, PendingApproval]] = {}
        self.last_sign = 0.0
        """When there was the last sign of life, by trio's clock."""
        self.seen = False
        """Whether there ever was a sign of life."""
        self.session_state: Final = live
        self._timeouts: Final = timeouts
        self.plan: Final = plan
        self.spec = plan.spec
        """What its adapter is to do: that of the plan, with what only its start has shown."""
        self.negotiation = plan.negotiation
        """What was granted: that of the plan, or less."""
        self.follow_up: Final = follow_up
        self.message_id: Final = message_id
        self._record = Run(id=run_id, session_id=session.id, provider=session.provider)
        self._previews: list[AnyEvent] = []
        """Stored events that the record does not count yet: they change no more than its text."""
        self.phase = RunPhase.WAITING
        self.context: RunContext | None = None
        """The run as the adapter to which its start was sent sees it."""
        self._recall: Callable[[], None] | None = None
        """Takes its start back; None once the adapter has launched the task."""
        self.task: Task[None] | None = None
        """The task, once the adapter has launched it."""
        self.played: tuple[ProviderAdapter, TaskSupervisor] | None = None
        """The adapter that plays it, and the nursery of run tasks, while it is played."""
        self.interruption: Task[None] | None = None
        self.due = inf
        """When the time of the present phase of its end is up, by trio's clock."""
        self.abandon_at = inf
        self.admitted: Final = LazyEvent()
        """Set when its admission is stored."""
        self.ended: Final = LazyEvent()
        """Set when its terminal event is stored."""
        self.gone: Final = LazyEvent()
        """Set when it has no task any more, and will have none."""
        self.dispatched_at: float | None = None
        """When its start was sent to the adapter, by trio's clock."""
        self.in_turn = True
        """Whether the agent is at work, as far as its events say."""
        self.streams: Final = RunStreams()
        """Its streams: ends of deltas that may be the beginnings of secrets."""
        self.undelivered: Final[dict[str, str]] = {}
        """Messages to the running turn whose fate is unknown: id and content."""
        self.watch_number = 0
        """Its number with the timer task, and"""
        self.watched_until = 0.0
        """when that looks at it next."""
        self.warned_at: float | None = None
        self.warned_of_deadline = False
        self.explained: tuple[object, ...] = ()
        """What explained its silence when the timer task was last told."""
        self.stopped_in: tuple[str, ...] = ()
        """Tools whose calls were running when it was stopped."""
        self.pause: PauseOrder | None = None

    @property
    def id(self) -> str:
        """The run's id."""
        return self.run_id

    @property
    def is_over(self) -> bool:
        """Whether its terminal event is stored."""
        return self._record.status in TERMINAL

    @property
    def run(self) -> Run:
        """The record, as far as it is stored."""
        if self._previews:
            self._record = reduce_all(self._record, self._previews)
            self._previews.clear()
        return self._record

    @property
    def has_turn(self) -> bool:
        """Whether it is its session's active run."""
        return self.session_state.active is self

    @property
    def can_wait(self) -> bool:
        """Whether it waits for its turn, and nothing has ended it."""
        return RunStep.DISPATCH in TRANSITIONS[self.phase]

    @property
    def is_active(self) -> bool:
        """Whether it has its turn, and nothing has ended it."""
        return self.phase in (RunPhase.DISPATCHED, RunPhase.RUNNING)

    @property
    def is_finished(self) -> bool:
        """Whether its end is stored, and it has no task any more."""
        return self.is_over and self.gone.is_set()

    @property
    def can_start(self) -> bool:
        """Whether its task may be started."""
        return RunStep.START in TRANSITIONS[self.phase]

    @property
    def was_cut(self) -> bool:
        """Whether its task, which has not reported its end, was cancelled."""
        return self.phase in (RunPhase.CUT, RunPhase.LATE, RunPhase.OVER)

    @property
    def is_late(self) -> bool:
        """Whether its task was cancelled when the grace was over, and is still there."""
        return self.phase is RunPhase.LATE

    @property
    def is_abandoned(self) -> bool:
        """Whether it is over, and its task is still there."""
        return self.phase is RunPhase.OVER and not self.gone.is_set()

    # --- of its supervision, which `SupervisedRun` adds ------------------------------------------

    @abstractmethod
    async def run_adapter(
        self, /, adapter: ProviderAdapter, context: RunContext, beside: TaskSupervisor
    ) -> None:
        """Call the adapter's `run` and report its end. This is the body of the run's task."""

    @abstractmethod
    def interrupt(self, /) -> None:
        """Start the task that asks the provider to end the run."""

    @abstractmethod
    async def ask(self, /, request: ApprovalRequest) -> Decision:
        """Store an approval request of the provider and return the stored decision."""

    @abstractmethod
    def begin_task_end(self, /) -> None:
        """Begin to end the task: interrupt it, or cancel it."""

    @abstractmethod
    def cut_task(self, /) -> None:
        """Cancel the task."""

    # --- steps -----------------------------------------------------------------------------------

    def _advance(self, step: RunStep) -> None:
        try:
            self.phase = TRANSITIONS[self.phase][step]
        except KeyError:
            raise IllegalTransition(self.phase, step) from None
        if (
            self.phase is RunPhase.OVER and step is not RunStep.GRACE_OVER
        ):  # else its task is still there
            self.gone.set()

    def _try_to_advance(self, step: RunStep) -> bool:
        """Take a step if the phase has it; return whether it has."""
        if step not in TRANSITIONS[self.phase]:
            return False
        self._advance(step)
        return True

    def dispatch(self) -> None:
        """Note that it has its turn."""
        self._advance(RunStep.DISPATCH)

    def task_launched(self, task: Task[None]) -> None:
        """Note that the adapter has launched its task."""
        self._advance(RunStep.START)
        self.task, self._recall = task, None

    def claim(self, stop: StopReason) -> bool:
        """Give the reason of its end, past every queue; False if it is ending already."""
        if not self._try_to_advance(RunStep.STOP):
            return False
        self._set_stop(stop)
        if self.phase is RunPhase.OVER:
            self._recall_start()
        return True

    def _set_stop(self, stop: StopReason) -> bool:
        if self.stop is not None:
            return False
        self.stop, self.stopped_at = stop, trio.current_time()
        return True

    def conclude(self, stop: StopReason) -> bool:
        """Give the reason of an end that is being recorded; False if there is another."""
        return self.claim(stop) or self._set_stop(stop)

    def end(self, stop: StopReason, pause: PauseOrder | None = None) -> bool:
        """Have it end, by an interrupt first if possible; False if it is ending already."""
        if not self.claim(stop):
            return False
        self.pause = pause
        if self.phase is RunPhase.OVER:  # it has no task to be ended
            self.session_state.commands.task_not_started(self, "")
        else:
            self.session_state.commands.stop(self)
            self.begin_task_end()
            self._timeouts.watch_run(self)
        return True

    def cut(self) -> bool:
        """Note that its task is cut; False if it has not the grace to end."""
        return self._try_to_advance(RunStep.CUT)

    def grace_expired(self) -> bool:
        """Note that the time for this phase of its end is over; False if it is not ending."""
        return self._try_to_advance(RunStep.GRACE_OVER)

    def task_ended(self, error: BaseException | None) -> None:
        """Note the end of its task: `run` returned, was cancelled, or raised `error`."""
        self._task_gone()
        self.session_state.commands.task_ended(self, error)

    def start_failed(self, why: str) -> None:
        """Have the recorder end it, because its task will not begin, unless it has none already."""
        self._recall_start()
        if not self.gone.is_set():
            self._task_gone()
            self.session_state.commands.task_not_started(self, why)

    def _recall_start(self) -> None:
        """Take its start back from the adapter, which has not launched it, or from who keeps it."""
        recall, self._recall, self.context = self._recall, None, None
        if recall is not None:
            recall()

    def _task_gone(self) -> None:
        if self.phase is not RunPhase.OVER:  # else it was abandoned
            self._advance(RunStep.TASK_OVER)
        self.gone.set()
        self.due = inf
        self.task = self.interruption = None  # which have the run, in a cycle

    def abandon_task(self) -> None:
        """End its task at once: its recorder has died, and another writes its end."""
        self.claim(StopReason(cause=EndCause.MANAGER_CRASH))
        self.cut_task()

    # --- what the others note --------------------------------------------------------------------

    def apply_record(self, record: Run) -> None:
        """Take over the record as it is stored, and wake those that wait for its end."""
        self._record = record
        if self.is_over:
            self.ended.set()

    def apply_previews(self, previews: Sequence[AnyEvent]) -> None:
        """Take over previews that are stored; the record counts some at a time."""
        self._previews += previews
        if len(self._previews) >= COUNTED_TOGETHER:
            self._record = self.run

    def note_activity(self) -> None:
        """Note a sign of life."""
        self.last_sign = trio.current_time()
        self.seen = True

    def redact(self, text: str) -> str:
        """Return a text without the secrets that are known by now."""
        return self.session_state.redactor.text.redact(text)

    def resume_session(self) -> None:
        """Have it resume its session's provider session, unless it has one to resume."""
        known = self.session_state.provider_session_id
        if self.spec.provider_session_id is None and known is not None:
            self.spec = replace(self.spec, provider_session_id=known)

    def start_postponed(self, recall: Callable[[], None]) -> None:
        """Note that its start waits for an adapter."""
        self.context, self._recall = None, recall

    def start_sent(self, context: RunContext, recall: Callable[[], None]) -> bool:
        """Note that its start was sent to the adapter; False if that is its second start."""
        self.context, self._recall = context, recall
        self.last_sign = trio.current_time()
        if self.dispatched_at is not None:
            return False
        self.dispatched_at = self.last_sign
        return True

    def excuse_silence(self, now: float) -> None:
        """Count no silence before `now`: its events may wait to be stored."""
        self.last_sign = max(self.last_sign, now)

    def exclude_standstill(self, seconds: float, now: float) -> None:
        """Take a standstill of our own process out of its silence."""
        sign, self.last_sign = self.last_sign, min(now, self.last_sign + seconds)
        if self.warned_at == sign:
            self.warned_at = self.last_sign
