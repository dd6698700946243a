"""Requests and their answers: checks that each answer is the expected one."""

from __future__ import annotations

from tests.otp.child_model import expect
from tests.otp.observed_event import CANCELLED, OK, ObservedEvent


class RequestAnswers:
    """What orders are to be answered, and which of them were taken back."""

    def __init__(self) -> None:
        self.withdrawn: set[int] = set()
        self._open: set[int] = set()
        self._predicted: dict[int, tuple[object, ...]] = {}

    def predict(self, order: int, *answers: object) -> None:
        """Record the expected answer of a request."""
        self._predicted[order] = (CANCELLED,) if order in self.withdrawn else answers

    def hear(self, event: ObservedEvent) -> None:
        """Follow what is asked, taken back and answered."""
        match event.kind:
            case "order":
                self._open.add(event.order)
            case "withdraw":
                self.withdrawn.add(event.order)
            case "answer":
                self._open.discard(event.order)
                predicted = self._predicted.get(event.order)
                if event.data == CANCELLED:
                    fits = event.order in self.withdrawn and predicted != (OK,)
                else:
                    fits = predicted is not None and event.data in predicted
                expect(fits, f"the answer has to be {predicted}", event)
            case _:
                pass

    def close(self, event: ObservedEvent) -> None:
        """Check that every request was answered."""
        expect(not self._open, f"no answer to {self._open}", event)
