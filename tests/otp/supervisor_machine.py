"""Model of a supervisor as a machine that reads events and refuses those that break the rules.

It simulates the supervisor's one task: exits, orders and failed starts are dealt with in the
order in which they came, and what it does shows in the children. Between two of its steps a
child that was told to may end at any time. What comes neither as the next step nor on
somebody's word is `Unexpected`.

A step is seen later than it is decided on. So where a stop, or the withdrawal of an order, is
under way at that very time, the machine guesses whether it came first. When exactly a
supervisor that is a child was stopped by its parent cannot be seen at all: it guesses that too.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sessionmgr.otp import (
    ChildRunning,
    DuplicateChild,
    ExitReason,
    OtpError,
    Shutdown,
    StartFailed,
    SupervisorStopping,
    UnknownChild,
)
from tests.otp.child_model import ChildIncarnation, expect
from tests.otp.expected_failure import GaveUpError, StartError, comes_back
from tests.otp.observed_event import OK, ObservedEvent
from tests.otp.supervisor_observer import (
    ChildExit,
    FailedRestart,
    Flow,
    ModelEntry,
    PendingRequest,
    SupervisorObserver,
)

if TYPE_CHECKING:
    from tests.otp.supervisor_observer import ModelContext
    from tests.otp.supervisor_scripts import SupervisorOptions


class SupervisorMachine(SupervisorObserver):
    """One run of one supervisor: what it does, one step after the other."""

    def __init__(self, court: ModelContext, path: str, options: SupervisorOptions) -> None:
        super().__init__(court, path, options)
        self._flow = self._live()
        next(self._flow)

    def feed(self, event: ObservedEvent) -> None:
        """See what happens next."""
        self._flow.send(event)

    def be_told(self, event: ObservedEvent) -> None:
        """Hear from outside that it is to end."""
        super().be_told(event)
        self.feed(event._replace(kind="stop"))

    def _live(self) -> Flow[None]:
        try:
            yield from self._start_all()
            if not self.must_stop():
                self.up = True
                yield from self._supervise()
        except (GaveUpError, StartError) as failure:
            self.failure = failure
        self.stopping = True
        for item in self.inbox:
            if isinstance(item, PendingRequest):
                self.answers.predict(item.number, SupervisorStopping)
        for seat in reversed(self.seats):
            yield from self._end(seat)
        self.closed = True
        while True:
            event = yield from self.event()
            if event.who != self.path or event.kind != "gone":
                self.hear(event)

    def _start_all(self) -> Flow[None]:
        yield from self.lag()
        for seat in list(self.seats):
            if self.must_stop():
                return
            reason = yield from self._start(seat)
            yield from self.lag()
            if reason is not None and not self.must_stop():
                raise StartError(seat.path.rpartition("/")[2], reason)

    def _supervise(self) -> Flow[None]:
        while not self.must_stop():
            late = [seat for seat, due in self.due.items() if due <= self.now]
            if late or self.inbox:
                head = None if late else self.inbox[0]
                yield from self.lag(head.number if isinstance(head, PendingRequest) else None)
                if self.must_stop():
                    return
                if head is None:
                    del self.due[late[0]]
                    yield from self._bring_up(late[0])
                else:
                    self.inbox.popleft()
                    yield from self._handle(head)
            else:
                yield from self._idle()

    def _idle(self) -> Flow[None]:
        event = yield from self.event()
        next_due = min(self.due.values(), default=math.inf)
        if event.time >= next_due:
            self.now = next_due
            self.put_back = event
        elif not self.notices(event):
            if event.kind == "quiet":
                rows = [(s.path, "stopped" if s.life is None else "running") for s in self.seats]
                expect(event.data == rows, f"there should be {rows}", event)
            else:
                self.hear(event)

    def _handle(self, item: ChildExit | FailedRestart | PendingRequest) -> Flow[None]:
        match item:
            case ChildExit(seat, life):
                if seat in self.seats and seat.life is life:
                    yield from self._after_exit(seat, life)
            case FailedRestart(seat, reason):
                if seat in self.seats and seat.restarting:
                    yield from self._restart(seat, reason)
            case PendingRequest(number=number) if number in self.answers.withdrawn:
                pass
            case PendingRequest(verb="start"):
                yield from self._start_child(item)
            case PendingRequest(verb="terminate"):
                yield from self._terminate_child(item)
            case PendingRequest():
                yield from self._change_stopped_child(item)

    # Ends and restarts.

    def _after_exit(self, seat: ModelEntry, life: ChildIncarnation) -> Flow[None]:
        seat.life = None
        plan = seat.plan
        if comes_back(plan.restart, life.reason):
            assert life.up_since is not None
            if plan.backoff and self.now - life.up_since >= plan.backoff.maximum:
                seat.strikes = 0
            yield from self._restart(seat, life.reason)
            return
        if plan.restart == "temporary":
            self.seats.remove(seat)
        if plan.significant:
            left = any(
                other.plan.significant and (other.life or self._is_restarting(other))
                for other in self.seats
            )
            self.stop |= self.options.auto_shutdown == "any_significant" or not left

    def _restart(self, seat: ModelEntry, reason: ExitReason) -> Flow[None]:
        self.account.charge(seat.path, reason, self.now)
        seat.restarting, seat.leader = True, None
        for other in reversed(self._group(seat)):
            if other is not seat:
                yield from self._end(other)
                self.due.pop(other, None)
                other.restarting, other.leader = False, seat
            if other.plan.restart == "temporary":
                self.seats.remove(other)
        backoff = seat.plan.backoff
        if backoff is None:
            yield from self._bring_up(seat)
        else:
            self.due[seat] = self.now + min(backoff.minimum * 2**seat.strikes, backoff.maximum)
            seat.strikes += 1

    def _group(self, seat: ModelEntry) -> list[ModelEntry]:
        match self.options.strategy:
            case "one_for_one":
                return [seat]
            case "one_for_all":
                return list(self.seats)
            case "rest_for_one":
                return self.seats[self.seats.index(seat) :]

    def _bring_up(self, leader: ModelEntry) -> Flow[None]:
        group = self._group(leader)
        for place, seat in enumerate(group):
            yield from self.lag()
            if self.must_stop():
                return
            if seat.life is not None:
                continue
            reason = yield from self._start(seat)
            if self.must_stop():
                return
            if reason is not None:
                # Tried again later; what ended meanwhile may have come in before.
                while self.court.more_comes_now(self.path):
                    self.hear((yield from self.event()))
                seat.restarting, seat.leader = True, None
                for other in group[place + 1 :]:
                    other.restarting, other.leader = False, seat
                self.inbox.append(FailedRestart(seat, reason))
                return

    def _is_restarting(self, seat: ModelEntry) -> bool:
        leader = seat.leader or seat
        return seat.life is None and leader in self.seats and leader.restarting

    def _start(self, seat: ModelEntry, order: int | None = None) -> Flow[ExitReason | None]:
        """Start a child; give the reason if it does not come up."""
        since = self.now
        self.due.pop(seat, None)
        seat.restarting, seat.leader = False, None
        while True:
            event = yield from self.event()
            if self.notices(event):
                return Shutdown()
            if event.kind == "start" and event.who == seat.path:
                break
            self.hear(event)
        expect(event.time == since, f"it had to start at {since}", event)
        life = seat.life = ChildIncarnation(seat.plan, event)
        self.lives[seat.path] = seat, life
        if seat.plan.within is not None:
            life.below = self.court.open(seat.path, seat.plan.within)
            if life.below.up:
                life.come_up(event)
        comes_up = False
        while life.up_since is None:
            if not comes_up and (self.must_stop() or order in self.answers.withdrawn):
                comes_up = self.court.comes_up_now(seat.path)
                if not comes_up:
                    yield from self._end(seat)
                    return Shutdown()
            event = yield from self.event()
            if self.notices(event):
                continue
            if event.who == seat.path and event.kind == "ready":
                life.come_up(event)
            elif event.who == seat.path and event.kind == "gone":
                life.end(event)
                seat.life = None
                return life.reason
            else:
                self.hear(event)
        return None

    def _end(self, seat: ModelEntry) -> Flow[None]:
        """Stop a child and wait; one that has ended meanwhile is not looked at again."""
        life = seat.life
        if life is None or life.gone:
            seat.life = None
            return
        life.asked = self.now
        life.patience = 0.0 if self.killed or self.now >= self.deadline else seat.plan.patience
        if life.below is not None:
            life.below.stop_pending = self.now
            life.below.killed |= life.patience == 0
            life.below.deadline = min(self.deadline, self.now + life.patience)
        exactly = True
        while not life.is_over():
            event = yield from self.event()
            if event.who != seat.path or event.kind not in {"gone", "ready"}:
                self.hear(event)
            elif event.kind == "gone":
                hurried = self.killed or self.deadline < math.inf
                life.end(event, exactly=exactly and not hurried)
            else:
                expect(life.up_since is None and event.time == life.asked, "not now", event)
                life.come_up(event)
                exactly = False
        seat.life = None

    # Orders.

    def _find(self, path: str) -> ModelEntry | None:
        return next((seat for seat in self.seats if seat.path == path), None)

    def _start_child(self, order: PendingRequest) -> Flow[None]:
        if self._find(order.path) is not None:
            self.answers.predict(order.number, DuplicateChild)
            return
        seat = ModelEntry(order.path, order.plan)
        self.seats.append(seat)
        reason = yield from self._start(seat, order.number)
        yield from self.lag(order.number)
        if reason is not None or order.number in self.answers.withdrawn:
            yield from self._end(seat)
            self.seats.remove(seat)
        self._answer_start(order, reason)

    def _answer_start(self, order: PendingRequest, reason: ExitReason | None) -> None:
        answer: type[OtpError] | str = OK if reason is None else StartFailed
        self.answers.predict(order.number, SupervisorStopping if self.must_stop() else answer)

    def _terminate_child(self, order: PendingRequest) -> Flow[None]:
        seat = self._find(order.path)
        if seat is None:
            self.answers.predict(order.number, UnknownChild)
            return
        yield from self._end(seat)
        seat.restarting, seat.leader = False, None
        self.due.pop(seat, None)
        if seat.plan.restart == "temporary":
            self.seats.remove(seat)
        yield from self.lag(order.number)
        self.answers.predict(order.number, OK)

    def _change_stopped_child(self, order: PendingRequest) -> Flow[None]:
        seat = self._find(order.path)
        if seat is None:
            self.answers.predict(order.number, UnknownChild)
        elif seat.life is not None or self._is_restarting(seat):
            self.answers.predict(order.number, ChildRunning)
        elif order.verb == "delete":
            self.seats.remove(seat)
            self.answers.predict(order.number, OK)
        else:
            reason = yield from self._start(seat, order.number)
            yield from self.lag(order.number)
            if order.number in self.answers.withdrawn:
                yield from self._end(seat)
            self._answer_start(order, reason)
