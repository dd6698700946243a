"""Observed events of a supervisor at work, in the order in which they happened."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

EventKind = Literal[
    "start",
    "ready",
    "farewell",
    "gone",
    "told",
    "order",
    "withdraw",
    "answer",
    "stop",
    "quiet",
    "over",
]


class ObservedEvent(NamedTuple):
    """One thing that was seen."""

    time: float
    kind: EventKind
    who: str
    """The path of the child, from the root supervisor; empty for the root itself."""
    life: int = 0
    """Which of its incarnations, counted from 0."""
    data: object = None
    """What was said: a reason, an order, an answer, an error."""
    order: int = 0

    def __str__(self) -> str:
        number = f" order {self.order}" if self.kind in {"order", "withdraw", "answer"} else ""
        life = f" #{self.life}" if self.who else ""
        data = "" if self.data is None else f" {self.data}"
        return f"{self.time:7.2f} {self.kind:<9}{self.who}{life}{number}{data}"


Trace = list[ObservedEvent]

CANCELLED: Final = "Cancelled"
OK: Final = "ok"
