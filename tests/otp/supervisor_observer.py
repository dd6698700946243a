"""One half of the model: events at a supervisor while it is idle or busy with another one."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar, cast

from sessionmgr.otp import Crashed, ExitReason, Killed, SupervisorNotRunning, SupervisorStopping
from tests.otp.child_model import ChildIncarnation, expect, expected_reason
from tests.otp.expected_failure import Failure, RestartAccount
from tests.otp.observed_event import ObservedEvent

if TYPE_CHECKING:
    from tests.otp.request_answers import RequestAnswers
    from tests.otp.supervisor_machine import SupervisorMachine
    from tests.otp.supervisor_scripts import ChildPlan, SupervisorOptions, Verb

T = TypeVar("T")
Flow = Generator[None, ObservedEvent, T]


@dataclass(eq=False)
class ModelEntry:
    """A child's place in the order."""

    path: str
    plan: ChildPlan
    life: ChildIncarnation | None = None
    restarting: bool = False
    leader: ModelEntry | None = None
    """With whom it fell, and will come back."""
    strikes: int = 0


class ChildExit(NamedTuple):
    """A child has ended."""

    seat: ModelEntry
    life: ChildIncarnation


class FailedRestart(NamedTuple):
    """A child did not come up again."""

    seat: ModelEntry
    reason: ExitReason


class PendingRequest(NamedTuple):
    """A request arrived."""

    number: int
    path: str
    verb: Verb
    plan: ChildPlan


class ModelContext(Protocol):
    """What a machine wants to know of the rest of the world."""

    now: float
    answers: RequestAnswers

    def guess(self, suggested: bool) -> bool:
        """Answer a question about what cannot be seen."""
        ...

    def stops_now(self, path: str, order: int | None) -> bool:
        """Say whether at this very time a stop, or the withdrawal of an order, is to come."""
        ...

    def comes_up_now(self, path: str) -> bool:
        """Guess whether at this very time a start comes to its end after all."""
        ...

    def more_comes_now(self, path: str) -> bool:
        """Guess whether at this very time something else comes into the inbox first."""
        ...

    def open(self, path: str, options: SupervisorOptions) -> SupervisorMachine:
        """Give the machine for a supervisor that starts."""
        ...


class SupervisorObserver:
    """One run of one supervisor, as far as things happen to it."""

    def __init__(self, court: ModelContext, path: str, options: SupervisorOptions) -> None:
        self.court = court
        self.answers = court.answers
        self.path = path
        self.options = options
        prefix = f"{path}/x" if path else "c"
        self.seats = [ModelEntry(f"{prefix}{n}", plan) for n, plan in enumerate(options.plans)]
        self.lives: dict[str, tuple[ModelEntry, ChildIncarnation]] = {}
        self.inbox: deque[ChildExit | FailedRestart | PendingRequest] = deque()
        self.due: dict[ModelEntry, float] = {}
        self.account = RestartAccount(options)
        self.before = self.now = court.now
        self.put_back: ObservedEvent | None = None
        # Asked to stop: for sure; perhaps already, by its parent, since then; without any grace,
        # at once or from some time on.
        self.stop = False
        self.stop_pending: float | None = None
        self.killed = False
        self.deadline = math.inf
        self.told_reason: ExitReason | None = None
        self.up = False
        self.stopping = False
        self.closed = False
        self.failure: Failure | None = None

    def explains(self, reason: ExitReason) -> bool:
        """Say whether a run that ends like this one is over for `reason`."""
        if self.failure is not None:
            return isinstance(reason, Crashed) and self.failure.resembles(reason.error)
        return self.told_reason is not None and reason in (self.told_reason, Killed())

    def must_stop(self) -> bool:
        """Return whether it was asked to stop, or has decided to."""
        return self.stop

    def event(self) -> Flow[ObservedEvent]:
        """Take what happens next."""
        event, self.put_back = self.put_back, None
        if event is None:
            event = yield
        self.before, self.now = self.now, event.time
        return event

    def hear(self, event: ObservedEvent) -> None:
        """See something happen that is not the supervisor's doing."""
        match event.kind:
            case "gone" if event.who in self.lives:
                seat, life = self.lives[event.who]
                expect(life.up_since is not None, "it was not up yet", event)
                life.end(event)
                self.inbox.append(ChildExit(seat, life))
            case "told" | "farewell":
                self.lives[event.who][1].hear(event)
            case "order":
                self._take_order(event)
            case "stop":
                self.stop = True
            case "withdraw":
                pass
            case _:
                expect(False, "this is not the next step", event)

    def be_told(self, event: ObservedEvent) -> None:
        """Hear from outside that it is to end."""
        self.told_reason = self.told_reason or expected_reason(event)
        self.killed |= event.data == "kill"

    def _take_order(self, event: ObservedEvent) -> None:
        if self.closed:
            self.answers.predict(event.order, SupervisorStopping, SupervisorNotRunning)
        elif self.stop or self.stopping:
            self.answers.predict(event.order, SupervisorStopping)
        else:
            verb, plan = cast("tuple[Verb, ChildPlan]", event.data)
            self.inbox.append(PendingRequest(event.order, event.who, verb, plan))

    # What cannot be seen.

    def notices(self, event: ObservedEvent) -> bool:
        """Guess whether the parent's stop was noticed before `event`, which then comes again."""
        if self.stop_pending is None or self.stop or not self.court.guess(True):
            return False
        self.now = max(self.before, self.stop_pending)
        self.stop = True
        self.put_back = event
        return True

    def lag(self, order: int | None = None) -> Flow[None]:
        """Guess whether what is under way comes before the next decision."""
        if self.stop:
            return
        if self.stop_pending is not None:
            self.now = max(self.now, self.stop_pending)
            self.stop = self.court.guess(True)
        elif self._stops_now(order) and self.court.guess(False):
            while not self.must_stop() and order not in self.answers.withdrawn:
                self.hear((yield from self.event()))

    def _stops_now(self, order: int | None) -> bool:
        if self.put_back is not None and self.put_back.kind == "stop":
            return True
        return self.court.stops_now(self.path, order)
