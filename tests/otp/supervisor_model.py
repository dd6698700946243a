"""Model of a whole tree: passes each event of a trace to the models concerned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tests.otp.child_model import expect, is_failed_start
from tests.otp.expected_failure import BlockOutcome
from tests.otp.hidden_choices import HiddenChoices, RuleViolation, some_choice_holds
from tests.otp.observed_event import ObservedEvent, Trace
from tests.otp.request_answers import RequestAnswers
from tests.otp.supervisor_machine import SupervisorMachine
from tests.otp.supervisor_scripts import FROM_OUTSIDE

if TYPE_CHECKING:
    from tests.otp.supervisor_scripts import SupervisorOptions, SupervisorScript


class SupervisorModel:
    """One attempt to explain what a `Supervisor` did."""

    def __init__(self, script: SupervisorScript, trace: Trace, guesses: HiddenChoices) -> None:
        self.guess = guesses.guess
        self.answers = RequestAnswers()
        self.now = 0.0
        self._script = script
        self._trace = trace
        self._place = 0
        self._machines: dict[str, SupervisorMachine] = {}
        self._announced: set[SupervisorMachine] = set()
        self._body_error: object = None
        self._ended_by_itself = False

    # What machines ask.

    def _at_this_time(self) -> Iterator[ObservedEvent]:
        for place in range(self._place + 1, len(self._trace)):
            event = self._trace[place]
            if event.time > self.now:
                return
            yield event

    def comes_up_now(self, path: str) -> bool:
        """Guess whether at this very time a start comes to its end after all."""
        if path in self._machines:
            return self.guess(False)
        return any(
            event.who == path and (event.kind == "ready" or is_failed_start(event.data))
            for event in self._at_this_time()
        ) and self.guess(True)

    def more_comes_now(self, path: str) -> bool:
        """Guess whether at this very time something else comes into the inbox first."""
        for event in self._at_this_time():
            if event.kind == "order" and not path:
                return self.guess(False)
            if event.kind in {"gone", "start"} and event.who.rpartition("/")[0] == path:
                return event.kind == "gone" and self.guess(False)
        return False

    def stops_now(self, path: str, order: int | None) -> bool:
        """Say whether at this very time a stop, or the withdrawal of an order, is to come."""
        for event in self._at_this_time():
            if event.kind == "stop" and not path:
                return True
            if event.kind == "told" and path == event.who and event.data in FROM_OUTSIDE:
                return True
            if event.kind == "withdraw" and event.order == order:
                return True
        return False

    def open(self, path: str, options: SupervisorOptions) -> SupervisorMachine:
        """Give the machine for a supervisor that starts."""
        machine = self._machines[path] = SupervisorMachine(self, path, options)
        if machine.up:
            self._announced.add(machine)
        return machine

    # The trace.

    def judge(self) -> None:
        """Go through the trace.

        Raises:
            Unexpected: it does not follow the rules.
        """
        root = self.open("", self._script.options)
        for place, event in enumerate(self._trace):
            self._place = place
            self.now = event.time
            self.answers.hear(event)
            self._hear(event, root)
        self.answers.close(self._trace[-1])

    def _hear(self, event: ObservedEvent, root: SupervisorMachine) -> None:
        match event.kind:
            case "answer":
                pass
            case "over":
                expect(root.closed, "over before the children are gone", event)
                cancelled = self._script.ending == "cancel"
                outcome = BlockOutcome(root.failure, self._body_error, cancelled=cancelled)
                fits = outcome.fits(event.data, ended_by_itself=self._ended_by_itself)
                expect(fits, f"{root.failure!r} and {self._body_error!r} do not end so", event)
            case "start" | "ready" | "farewell" | "gone" | "told":
                if event.kind == "gone" and event.who in self._machines:
                    below = self._machines.pop(event.who)
                    below.feed(event)
                    expect(below.closed, "gone before its children", event)
                self._pass_on(event, event.who.rpartition("/")[0])
            case _:
                if event.kind == "stop":
                    self._body_error = event.data
                    self._ended_by_itself = root.closed
                self._pass_on(event, "")

    def _pass_on(self, event: ObservedEvent, path: str) -> None:
        machine = self._machines[path]
        machine.feed(event)
        below = self._machines.get(event.who)
        if event.kind == "told" and below is not None:
            below.be_told(event)
        if path and machine.up and machine not in self._announced:
            self._announced.add(machine)
            self._pass_on(ObservedEvent(event.time, "ready", path), path.rpartition("/")[0])


def check_supervisor(script: SupervisorScript, trace: Trace) -> None:
    """Say whether what a `Supervisor` did follows the rules.

    Raises:
        Unexpected: it does not.
    """
    try:
        some_choice_holds(lambda guesses: SupervisorModel(script, trace, guesses).judge())
    except RuleViolation as error:
        raise RuleViolation("\n".join([str(error), *map(str, trace)])) from None
