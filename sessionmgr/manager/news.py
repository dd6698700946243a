"""What a keeper hears of beside its runs' own events: what the manager wants written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec

if TYPE_CHECKING:
    from sessionmgr.adapter.lazy_event import Latch
    from sessionmgr.adapter.question import Decision
    from sessionmgr.adapter.run_control import Question
    from sessionmgr.manager.run_state import RunState
    from sessionmgr.model import Event, Negotiation


Fate: TypeAlias = Literal["sent", "dropped", "unknown"]
"""What can become of a message to a turn that is on."""


class Admitted(msgspec.Struct, frozen=True):
    """A run was let in: it is to be written down, and dispatched when its turn comes."""

    entry: RunState
    has_turn: bool
    """Whether it has it already."""


class Dispatching(msgspec.Struct, frozen=True):
    """A run has its turn: its prompt is on its way to the provider."""

    entry: RunState


class NotLaunched(msgspec.Struct, frozen=True):
    """A run's turn came to nothing: it was ended just then, or its provider is not there."""

    entry: RunState
    why: str


class Stopped(msgspec.Struct, frozen=True):
    """A run that had its turn was ended by another than its provider."""

    entry: RunState


class TaskEnded(msgspec.Struct, frozen=True):
    """A run's task has ended: it returned, was cancelled, or raised `error`."""

    entry: RunState
    error: BaseException | None = None


class Decided(msgspec.Struct, frozen=True):
    """Somebody has answered a question."""

    entry: RunState
    question: Question
    decision: Decision


class Delivery:
    """How far a message to a turn has come."""

    __slots__ = ("begun", "fate")

    def __init__(self) -> None:
        self.begun = False
        """Whether the provider may have it."""
        self.fate: Fate | None = None
        """What became of it; None for good, if its keeper died meanwhile."""


class FollowUpSent(msgspec.Struct, frozen=True):
    """A message is to be given to the run that is on, once it is written down."""

    entry: RunState
    message_id: str
    content: str
    written: Latch
    delivery: Delivery


class FollowUpFate(msgspec.Struct, frozen=True):
    """What became of such a message."""

    sent: FollowUpSent
    fate: Fate


class Noted(msgspec.Struct, frozen=True):
    """The manager itself has something to say about a run."""

    entry: RunState
    events: tuple[Event, ...]


class Narrowed(msgspec.Struct, frozen=True):
    """The provider can do less than it was thought to: so much is left for this run."""

    entry: RunState
    negotiation: Negotiation


class Overdue(msgspec.Struct, frozen=True):
    """A run's task does not end, however hard it was asked to."""

    entry: RunState


class Closing(msgspec.Struct, frozen=True):
    """The session takes no more runs, and is closed when the last one is over."""

    written: Latch | None = None


class Quiet(msgspec.Struct, frozen=True):
    """There has been no news for a while."""


QUIET: Final = Quiet()
