"""The state of one run, from its admission until its task has ended.

Only the methods here write the phase. The session's recorder and the commands that it hands out
call them, and each takes a step of the table in `run_phase`. The record (`RunState.run`) is built
from stored events alone: it can be behind the phase while the store is slow, but never ahead.

The protocols below name what a run uses of its session and of the timer, whose modules import this
one.
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
    from sessionmgr.manager.pause_snapshot import PauseRequest
    from sessionmgr.manager.pending_approval import PendingApproval
    from sessionmgr.manager.run_plan import RunPlan
    from sessionmgr.model import AnyEvent, Event, Negotiation, Session
    from sessionmgr.otp import TaskHandle as Task, TaskSupervisor
    from sessionmgr.store import Redactor

COUNTED_TOGETHER: Final = 64
"""The number of previews that the record counts at once."""


DeliveryState: TypeAlias = Literal["sent", "dropped", "unknown"]
"""The delivery state of a message to the running turn."""


class TurnMessage(msgspec.Struct):
    """A message to the running turn. The recorder stores it before the provider gets it."""

    entry: RunState
    message_id: str
    content: str
    written: LazyEvent
    is_begun: bool = False
    """Whether the provider may have received it."""
    delivery: DeliveryState | None = None
    """Its delivery state; it stays None if the recorder dies first."""


class RunTimer(Protocol):
    """The timer that enforces the timeouts of runs."""

    def watch_run(self, run: RunState) -> None:
        """Compute again when to examine a run next."""


class RunCommands(Protocol):
    """The recorder's commands about one run; `RecorderCommands` implements them."""

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
    """The session of a run, as the run and its supervision use it; `SessionState` implements it."""

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
    """The state of one run: plan, phase and record, shared by recorder, adapter and handles."""

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
        """Seconds that the provider has to end by itself after an interrupt."""
        self.stop: StopReason | None = None
        """The reason of the run's end: the first one wins."""
        self.stopped_at = 0.0
        """The time of that reason, by trio's clock."""
        self.questions: Final[dict[str, PendingApproval]] = {}
        self.last_sign = 0.0
        """The time of the last sign of life, by trio's clock."""
        self.seen = False
        """Whether there was any sign of life."""
        self.session_state: Final = live
        self._timeouts: Final = timeouts
        self.plan: Final = plan
        self.spec = plan.spec
        """The adapter's instructions: the plan's, completed with what the start has shown."""
        self.negotiation = plan.negotiation
        """The granted capabilities: those of the plan, or fewer."""
        self.follow_up: Final = follow_up
        self.message_id: Final = message_id
        self._record = Run(id=run_id, session_id=session.id, provider=session.provider)
        self._previews: list[AnyEvent] = []
        """Stored events that the record does not count yet; they change only its text."""
        self.phase = RunPhase.WAITING
        self.context: RunContext | None = None
        """The run as its adapter sees it, once the start was sent."""
        self._recall: Callable[[], None] | None = None
        """Takes the start back; None once the adapter has launched the task."""
        self.task: Task[None] | None = None
        """The task, once the adapter has launched it."""
        self.played: tuple[ProviderAdapter, TaskSupervisor] | None = None
        """The adapter that runs it and the supervisor of run tasks, while its task runs."""
        self.interruption: Task[None] | None = None
        self.due = inf
        """The end of the present shutdown phase, by trio's clock."""
        self.abandon_at = inf
        self.admitted: Final = LazyEvent()
        """Set when its admission is stored."""
        self.ended: Final = LazyEvent()
        """Set when its terminal event is stored."""
        self.gone: Final = LazyEvent()
        """Set when the run has no task and will not get one."""
        self.dispatched_at: float | None = None
        """The time when its start was sent to the adapter, by trio's clock."""
        self.in_turn = True
        """Whether the agent is working, according to its events."""
        self.streams: Final = RunStreams()
        """The held-back ends of text deltas, which may be beginnings of secrets."""
        self.undelivered: Final[dict[str, str]] = {}
        """Messages to the running turn whose delivery is unknown: id and content."""
        self.watch_number = 0
        """The key of its entry in the timer's heap,"""
        self.watched_until = 0.0
        """and the time of that entry."""
        self.warned_at: float | None = None
        self.warned_of_deadline = False
        self.explained: tuple[object, ...] = ()
        """The explanation of its silence when the timer last computed its timeout."""
        self.stopped_in: tuple[str, ...] = ()
        """The tools whose calls were running when the run was stopped."""
        self.pause: PauseRequest | None = None

    @property
    def id(self) -> str:
        """The run's id."""
        return self.run_id

    @property
    def is_over(self) -> bool:
        """Whether the terminal event is stored."""
        return self._record.status in TERMINAL

    @property
    def run(self) -> Run:
        """The record of the stored events."""
        if self._previews:
            self._record = reduce_all(self._record, self._previews)
            self._previews.clear()
        return self._record

    @property
    def is_current(self) -> bool:
        """Whether it is the active run of its session."""
        return self.session_state.active is self

    @property
    def can_wait(self) -> bool:
        """Whether it is queued: neither dispatched nor over."""
        return RunStep.DISPATCH in TRANSITIONS[self.phase]

    @property
    def is_active(self) -> bool:
        """Whether it is dispatched or running, and not ending."""
        return self.phase in (RunPhase.DISPATCHED, RunPhase.RUNNING)

    @property
    def is_finished(self) -> bool:
        """Whether its end is stored and its task is gone."""
        return self.is_over and self.gone.is_set()

    @property
    def can_start(self) -> bool:
        """Whether its task can be started."""
        return RunStep.START in TRANSITIONS[self.phase]

    @property
    def was_cut(self) -> bool:
        """Whether its task was cancelled and has not reported its end."""
        return self.phase in (RunPhase.CUT, RunPhase.LATE, RunPhase.OVER)

    @property
    def is_late(self) -> bool:
        """Whether its task still runs after the grace, although it was cancelled."""
        return self.phase is RunPhase.LATE

    @property
    def is_abandoned(self) -> bool:
        """Whether the run is over while its task still exists."""
        return self.phase is RunPhase.OVER and not self.gone.is_set()

    # --- supervision, implemented by `SupervisedRun` ---------------------------------------------

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
        ):  # else its task still exists
            self.gone.set()

    def _try_to_advance(self, step: RunStep) -> bool:
        """Take a step if the phase allows it; return whether it does."""
        if step not in TRANSITIONS[self.phase]:
            return False
        self._advance(step)
        return True

    def dispatch(self) -> None:
        """Note that the run is the active one of its session now."""
        self._advance(RunStep.DISPATCH)

    def task_launched(self, task: Task[None]) -> None:
        """Note that the adapter has launched its task."""
        self._advance(RunStep.START)
        self.task, self._recall = task, None

    def begin_stop(self, stop: StopReason) -> bool:
        """Set the stop reason, past the inbox; False if the run is ending already."""
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
        """Set the stop reason of an end that is being stored; False if there was one before."""
        return self.begin_stop(stop) or self._set_stop(stop)

    def end(self, stop: StopReason, pause: PauseRequest | None = None) -> bool:
        """End the run, by an interrupt first if possible; False if it is ending already."""
        if not self.begin_stop(stop):
            return False
        self.pause = pause
        if self.phase is RunPhase.OVER:  # there is no task to end
            self.session_state.commands.task_not_started(self, "")
        else:
            self.session_state.commands.stop(self)
            self.begin_task_end()
            self._timeouts.watch_run(self)
        return True

    def cut(self) -> bool:
        """Note that the task is cancelled; False if the run is not stopping."""
        return self._try_to_advance(RunStep.CUT)

    def grace_expired(self) -> bool:
        """Note that the time for this shutdown phase is over; False if the run is not ending."""
        return self._try_to_advance(RunStep.GRACE_OVER)

    def task_ended(self, error: BaseException | None) -> None:
        """Note the end of the task: `run` returned, was cancelled, or raised `error`."""
        self._task_gone()
        self.session_state.commands.task_ended(self, error)

    def start_failed(self, why: str) -> None:
        """End the run, whose task will not begin; do nothing if its task is gone already."""
        self._recall_start()
        if not self.gone.is_set():
            self._task_gone()
            self.session_state.commands.task_not_started(self, why)

    def _recall_start(self) -> None:
        """Take the start back from the adapter or from the branch that has postponed it."""
        recall, self._recall, self.context = self._recall, None, None
        if recall is not None:
            recall()

    def _task_gone(self) -> None:
        if self.phase is not RunPhase.OVER:  # else it was abandoned
            self._advance(RunStep.TASK_OVER)
        self.gone.set()
        self.due = inf
        self.task = self.interruption = None  # these refer to the run: a reference cycle

    def abandon_task(self) -> None:
        """Cancel the task at once: the recorder has died, and the Reconciler writes the end."""
        self.begin_stop(StopReason(cause=EndCause.MANAGER_CRASH))
        self.cut_task()

    # --- notes of other parts --------------------------------------------------------------------

    def apply_record(self, record: Run) -> None:
        """Adopt the stored record, and wake the tasks that wait for the end."""
        self._record = record
        if self.is_over:
            self.ended.set()

    def apply_previews(self, previews: Sequence[AnyEvent]) -> None:
        """Adopt stored previews; the record counts many of them at once."""
        self._previews += previews
        if len(self._previews) >= COUNTED_TOGETHER:
            self._record = self.run

    def note_activity(self) -> None:
        """Note a sign of life."""
        self.last_sign = trio.current_time()
        self.seen = True

    def redact(self, text: str) -> str:
        """Return a text without the secrets that are known so far."""
        return self.session_state.redactor.text.redact(text)

    def resume_session(self) -> None:
        """Resume the provider session of its session, unless the run names one itself."""
        known = self.session_state.provider_session_id
        if self.spec.provider_session_id is None and known is not None:
            self.spec = replace(self.spec, provider_session_id=known)

    def start_postponed(self, recall: Callable[[], None]) -> None:
        """Note that the start waits for an adapter."""
        self.context, self._recall = None, recall

    def start_sent(self, context: RunContext, recall: Callable[[], None]) -> bool:
        """Note that the start was sent to the adapter; return whether it was the first time."""
        self.context, self._recall = context, recall
        self.last_sign = trio.current_time()
        if self.dispatched_at is not None:
            return False
        self.dispatched_at = self.last_sign
        return True

    def excuse_silence(self, now: float) -> None:
        """Count no silence before `now`, because events may still wait to be stored."""
        self.last_sign = max(self.last_sign, now)

    def exclude_standstill(self, seconds: float, now: float) -> None:
        """Subtract a standstill of our own process from the silence."""
        sign, self.last_sign = self.last_sign, min(now, self.last_sign + seconds)
        if self.warned_at == sign:
            self.warned_at = self.last_sign
