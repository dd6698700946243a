"""Model of one incarnation of a child: which events it may produce, and in which order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessionmgr.otp import Crashed, Killed, Normal, Shutdown
from tests.otp.hidden_choices import RuleViolation
from tests.otp.observed_event import ObservedEvent
from tests.otp.supervisor_scripts import (
    FROM_OUTSIDE,
    REASONS,
    ScriptedCrashError,
    StartCrashError,
    TerminateCrashError,
)

if TYPE_CHECKING:
    from sessionmgr.otp import ExitReason
    from tests.otp.supervisor_machine import SupervisorMachine
    from tests.otp.supervisor_scripts import ChildPlan

# What an actor has for its farewell when it ends by itself and is `brutal_kill`ed otherwise.
DEFAULT_FAREWELL = 5.0


class ChildIncarnation:
    """One life of a child, as far as it has been seen."""

    def __init__(self, plan: ChildPlan, started: ObservedEvent) -> None:
        self.plan = plan
        self.path = started.who
        self.number = started.life
        self.born = started.time
        self.up_since: float | None = None
        self.gone = False
        self.reason: ExitReason = Normal()
        self.told: list[ObservedEvent] = []
        # When its supervisor began to stop it, and for how long that waits.
        self.asked: float | None = None
        self.patience = 0.0
        self.said_farewell = False
        # The supervisor that it is.
        self.below: SupervisorMachine | None = None

    @property
    def is_function(self) -> bool:
        """Whether its clean-up is a shielded `finally`, which nothing cuts short."""
        return self.plan.kind in {"function", "started"}

    def is_over(self) -> bool:
        """Say whether its end has been seen."""
        return self.gone

    def come_up(self, event: ObservedEvent) -> None:
        """See that it is up."""
        if self.plan.kind != "supervisor":
            expect(event.time == self.born + self.plan.init, "up at the wrong time", event)
            expect(self.number not in self.plan.failing, "up though its start fails", event)
        self.up_since = event.time

    def hear(self, event: ObservedEvent) -> None:
        """Check that it was asked to stop, or runs `terminate`."""
        if event.kind == "told":
            self.told.append(event)
            return
        expect(self.plan.kind == "polite" and self.up_since is not None, "no farewell here", event)
        expect(not self.said_farewell, "a second farewell", event)
        self.said_farewell = True

    def end(self, event: ObservedEvent, *, exactly: bool = True) -> None:
        """See that it is gone: by its own will, or because it was stopped."""
        expect(not self.gone and event.life == self.number, "gone twice", event)
        self.gone = True
        assert not isinstance(event.data, ObservedEvent)
        self.reason = event.data  # type: ignore[assignment]
        if self.asked is None:
            expect(self._explains(self.reason), f"no reason to end as {self.reason}", event)
            self._check_time(event)
        elif self.plan.kind != "supervisor":
            stubborn = self.plan.farewell if self.is_function else 0.0
            latest = self.asked + max(self.patience, stubborn)
            expect(event.time <= latest, f"it had to be gone at {latest}", event)
            if exactly and not self.told:
                duration, reason = self._stopped()
                expect(event.time == self.asked + duration, f"stop takes {duration}", event)
                expect(_alike(self.reason, reason), f"stopped, this is {reason}", event)
        polite = self.plan.kind == "polite" and self.up_since is not None
        killed = isinstance(self.reason, Killed)
        if polite and not killed and self.asked is None:
            expect(self.said_farewell, "gone without farewell", event)

    def _stopped(self) -> tuple[float, ExitReason]:
        """Say how long it takes to stop, and what is the reason then."""
        plan = self.plan
        up = self.up_since is not None
        if self.is_function and up:
            late = plan.farewell > self.patience or self.patience == 0
            return plan.farewell, Killed() if late else Shutdown()
        if self.patience == 0:
            return 0.0, Killed()
        if plan.kind == "polite" and up:
            if plan.farewell > self.patience:
                return self.patience, Killed()
            return plan.farewell, Crashed(TerminateCrashError()) if plan.sour else Shutdown()
        return 0.0, Shutdown()

    def _explains(self, reason: ExitReason) -> bool:
        """Say whether it can have ended by itself for `reason`."""
        up = self.up_since is not None
        if not up and self.number in self.plan.failing and is_failed_start(reason):
            return True
        if self.below is not None and self.below.explains(reason):
            return True
        if any(
            _alike(reason, expected_reason(told)) for told in self.told if up or is_outside(told)
        ):
            return True
        if not (self.told and up and self.plan.kind == "polite"):
            return False
        if isinstance(reason, Crashed):
            return self.plan.sour and isinstance(reason.error, TerminateCrashError)
        return isinstance(reason, Killed) and self.plan.farewell > self._farewell_time()

    def _farewell_time(self) -> float:
        return DEFAULT_FAREWELL if self.plan.shutdown == "brutal_kill" else self.plan.patience

    def _check_time(self, event: ObservedEvent) -> None:
        """Where one thing led to the end, say when that must be."""
        if len(self.told) != 1 or self.up_since is None or self.plan.kind == "supervisor":
            return
        when = self.told[0].time
        if when < self.up_since:
            return
        if self.is_function:
            when += self.plan.farewell
        elif self.plan.kind == "polite" and self.told[0].data != "kill":
            when += min(self.plan.farewell, self._farewell_time())
        expect(event.time == when, f"it had to end at {when}", event)


def is_outside(told: ObservedEvent) -> bool:
    """Say whether this also ends a child that is not up yet."""
    return told.data in FROM_OUTSIDE


def is_failed_start(reason: object) -> bool:
    """Say whether this is how a start fails."""
    return isinstance(reason, Crashed) and isinstance(reason.error, StartCrashError)


def expected_reason(told: ObservedEvent) -> ExitReason:
    """Say what reason a child has that ends because of this."""
    match told.data:
        case "crash":
            return Crashed(ScriptedCrashError())
        case "finish":
            return Normal()
        case "kill":
            return Killed()
        case _:
            return REASONS[str(told.data).partition(" ")[2]]


def _alike(one: ExitReason, two: ExitReason) -> bool:
    if isinstance(one, Crashed) and isinstance(two, Crashed):
        return type(one.error) is type(two.error)
    return one == two


def expect(fact: bool, otherwise: str, event: ObservedEvent) -> None:
    """Refuse what has been seen, unless it fits."""
    if not fact:
        raise RuleViolation(f"{otherwise}: {event}")
