"""Model of a dynamic supervisor: children that start and end concurrently, without an order.

There is no task to follow here. An exit is dealt with at the time when it happens, but perhaps
after other things of that time; so exits wait in `_pending` until something shows that they
have been dealt with, at the latest when time goes on.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, cast

from sessionmgr.otp import (
    DuplicateChild,
    ExitReason,
    MaxChildren,
    Normal,
    StartFailed,
    SupervisorNotRunning,
    SupervisorStopping,
    UnknownChild,
)
from tests.otp.child_model import ChildIncarnation, expect, is_failed_start
from tests.otp.expected_failure import BlockOutcome, GaveUpError, RestartAccount, comes_back
from tests.otp.hidden_choices import HiddenChoices, RuleViolation, some_choice_holds
from tests.otp.observed_event import CANCELLED, OK, ObservedEvent, Trace
from tests.otp.request_answers import RequestAnswers

if TYPE_CHECKING:
    from tests.otp.supervisor_scripts import ChildPlan, SupervisorScript, Verb

MAX_CHILDREN: Final = 6

# Answers to a request whose child did not start: the cause may become known later.
NOT_STARTED: Final[tuple[object, ...]] = (StartFailed, SupervisorStopping)


@dataclass(eq=False)
class ModelChild:
    """A child that the supervisor knows."""

    path: str
    plan: ChildPlan
    order: int | None
    """Who waits for its first start."""
    expected: float | None
    """Since when it is about to start."""
    life: ChildIncarnation | None = None
    last: ExitReason = field(default_factory=Normal)
    dismissed: bool = False
    leavers: list[int] = field(default_factory=list[int])
    """Who waits for its end."""
    strikes: int = 0

    def ask(self, now: float) -> None:
        """Be asked to stop."""
        if self.life is not None and self.life.asked is None:
            self.life.asked = now
            self.life.patience = self.plan.patience


class DynamicSupervisorModel:
    """One attempt to explain what a `DynamicSupervisor` did."""

    def __init__(self, script: SupervisorScript, trace: Trace, guesses: HiddenChoices) -> None:
        self._guess = guesses.guess
        self._answers = RequestAnswers()
        self._script = script
        self._trace = trace
        self._entries: dict[str, ModelChild] = {}
        self._pending: deque[ModelChild] = deque()
        self._due: dict[ModelChild, float] = {}
        self._account = RestartAccount(script.options)
        self._now = 0.0
        self._stopping = False
        self._failure: GaveUpError | None = None
        self._body_error: object = None

    def judge(self) -> None:
        """Go through the trace.

        Raises:
            Unexpected: it does not follow the rules.
        """
        for event in self._trace:
            while event.time > self._now:
                self._let_time_pass(event)
            if self._is_late_news(event) and self._may_give_up() and self._guess(True):
                self._deal_with_all()
            if event.data is SupervisorStopping:
                expect(self._stopping, "it does not stop", event)
            self._answers.hear(event)
            self._hear(event)
        self._answers.close(self._trace[-1])

    @staticmethod
    def _is_late_news(event: ObservedEvent) -> bool:
        return any(event.data is answer for answer in NOT_STARTED)

    def _let_time_pass(self, event: ObservedEvent) -> None:
        self._deal_with_all()
        for entry in list(self._entries.values()):
            if entry.expected is not None:
                # What is stopped before its first step is never seen.
                unseen = self._stopping or entry.dismissed
                expect(unseen, f"{entry.path} had to start at {entry.expected}", event)
                self._remove(entry)
        self._now = min([event.time, *self._due.values()])
        for entry in [entry for entry, due in self._due.items() if due == self._now]:
            del self._due[entry]
            entry.expected = self._now

    def _hear(self, event: ObservedEvent) -> None:
        match event.kind:
            case "start":
                self._start(event)
            case "ready":
                self._come_up(event)
            case "told" | "farewell":
                self._life(event).hear(event)
            case "gone":
                self._end(event)
            case "order":
                self._order(event)
            case "withdraw":
                for entry in self._entries.values():
                    if entry.order == event.order:
                        entry.order, entry.dismissed = None, True
                        entry.ask(self._now)
            case "stop":
                self._body_error = event.data
                if self._may_give_up() and self._guess(False):
                    self._deal_with_all()
                self._stop()
            case "quiet":
                rows = [(path, "running") for path in self._entries]
                expect(event.data == rows, f"there should be {rows}", event)
            case "over":
                self._deal_with_all()
                alive = [path for path, entry in self._entries.items() if entry.life]
                expect(self._stopping and not alive, f"over before {alive} are gone", event)
                cancelled = self._script.ending == "cancel"
                outcome = BlockOutcome(self._failure, self._body_error, cancelled=cancelled)
                fits = outcome.fits(event.data, ended_by_itself=False)
                expect(fits, f"{self._failure!r} and {self._body_error!r} do not end so", event)
            case "answer":
                pass

    # What children do.

    def _life(self, event: ObservedEvent) -> ChildIncarnation:
        entry = self._entries.get(event.who)
        life = None if entry is None else entry.life
        expect(life is not None, "no child is running", event)
        assert life is not None
        return life

    def _start(self, event: ObservedEvent) -> None:
        entry = self._entries.get(event.who)
        while entry in self._pending:
            self._deal_with_one()
        expect(entry is not None and entry.expected == event.time, "it is not its time", event)
        assert entry is not None
        entry.expected = None
        entry.life = ChildIncarnation(entry.plan, event)
        if self._stopping or entry.dismissed:
            entry.ask(self._now)

    def _come_up(self, event: ObservedEvent) -> None:
        self._life(event).come_up(event)
        entry = self._entries[event.who]
        if entry.order is not None:
            self._answers.predict(entry.order, OK)
            entry.order = None

    def _end(self, event: ObservedEvent) -> None:
        life = self._life(event)
        if life.asked is None and self._may_give_up():
            by_itself = life.told or is_failed_start(event.data)
            if not by_itself or self._guess(False):
                self._deal_with_all()
        # Who came up, or failed to, just when it was asked to stop may have done so before.
        life.end(event, exactly=life.born + life.plan.init != life.asked)
        entry = self._entries[event.who]
        entry.life = None
        entry.last = life.reason
        up_since = life.up_since
        new = entry.order is not None
        lost = up_since is None or comes_back(entry.plan.restart, life.reason)
        if self._stopping or entry.dismissed or new or not lost:
            self._remove(entry)
            return
        backoff = entry.plan.backoff
        if up_since is not None and backoff and self._now - up_since >= backoff.maximum:
            entry.strikes = 0
        self._pending.append(entry)

    def _remove(self, entry: ModelChild) -> None:
        del self._entries[entry.path]
        self._due.pop(entry, None)
        if entry.order is not None:
            self._answers.predict(entry.order, *NOT_STARTED)
        for order in entry.leavers:
            self._answers.predict(order, OK, CANCELLED)

    # What the supervisor does.

    def _may_give_up(self) -> bool:
        coming = self._account.count(self._now) + len(self._pending)
        return not self._stopping and coming > self._script.options.max_restarts

    def _deal_with_all(self) -> None:
        while self._pending:
            self._deal_with_one()

    def _deal_with_one(self) -> None:
        entry = self._pending.popleft()
        if self._entries.get(entry.path) is not entry:
            return
        try:
            self._account.charge(entry.path, entry.last, self._now)
        except GaveUpError as failure:
            self._failure = failure
            self._pending.appendleft(entry)
            self._stop()
            return
        backoff = entry.plan.backoff
        if backoff is None:
            entry.expected = self._now
        else:
            delay = min(backoff.minimum * 2**entry.strikes, backoff.maximum)
            self._due[entry] = self._now + delay
            entry.strikes += 1

    def _stop(self) -> None:
        if self._stopping:
            return
        self._stopping = True
        for entry in self._pending:
            # Perhaps it was dealt with just before.
            entry.expected = self._now
        self._pending.clear()
        for entry in list(self._due):
            self._remove(entry)
        for entry in self._entries.values():
            entry.ask(self._now)
            if entry.order is not None:
                self._answers.predict(entry.order, *NOT_STARTED)

    # Orders.

    def _order(self, event: ObservedEvent) -> None:
        if self._may_give_up() and self._guess(False):
            self._deal_with_all()
        for entry in list(self._entries.values()):
            if entry.dismissed and entry.expected is not None and self._guess(False):
                self._remove(entry)
        verb, plan = cast("tuple[Verb, ChildPlan]", event.data)
        if self._stopping:
            self._answers.predict(event.order, SupervisorStopping, SupervisorNotRunning)
        elif verb == "start":
            self._start_child(event, plan)
        else:
            self._terminate_child(event)

    def _start_child(self, event: ObservedEvent, plan: ChildPlan) -> None:
        if event.who in self._entries:
            self._answers.predict(event.order, DuplicateChild)
        elif len(self._entries) >= MAX_CHILDREN:
            self._answers.predict(event.order, MaxChildren)
        else:
            self._entries[event.who] = ModelChild(event.who, plan, event.order, self._now)

    def _terminate_child(self, event: ObservedEvent) -> None:
        entry = self._entries.get(event.who)
        if entry is None:
            self._answers.predict(event.order, UnknownChild)
            return
        while entry in self._pending and self._guess(False):
            self._deal_with_one()
        entry.leavers.append(event.order)
        entry.dismissed = True
        if entry in self._pending or entry in self._due:
            self._remove(entry)
            return
        if entry.life is None:
            # It may go unseen.
            self._answers.predict(event.order, OK, CANCELLED)
            if entry.order is not None:
                self._answers.predict(entry.order, *NOT_STARTED)
        entry.ask(self._now)


def check_dynamic_supervisor(script: SupervisorScript, trace: Trace) -> None:
    """Say whether what a `DynamicSupervisor` did follows the rules.

    Raises:
        Unexpected: it does not.
    """
    try:
        some_choice_holds(lambda guesses: DynamicSupervisorModel(script, trace, guesses).judge())
    except RuleViolation as error:
        raise RuleViolation("\n".join([str(error), *map(str, trace)])) from None
