"""What a batch asks for once it is stored: never before, and each thing once."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import msgspec

if TYPE_CHECKING:
    from sessionmgr.adapter.lazy_event import Latch
    from sessionmgr.adapter.run_control import Question, Stop
    from sessionmgr.manager.news import Decided, FollowUpSent
    from sessionmgr.manager.run_state import RunState


class Tell(msgspec.Struct, frozen=True):
    """Somebody waits for it to be stored."""

    event: Latch


class Decide(msgspec.Struct, frozen=True):
    """A question wants an answer."""

    entry: RunState
    question: Question


class Answer(msgspec.Struct, frozen=True):
    """An answer may be given to the provider."""

    decided: Decided


class Steer(msgspec.Struct, frozen=True):
    """A message may be given to the running turn."""

    sent: FollowUpSent


class EndRun(msgspec.Struct, frozen=True):
    """A run is to end."""

    entry: RunState
    stop: Stop


class WindDown(msgspec.Struct, frozen=True):
    """A run's task is to be over soon."""

    entry: RunState


class Launch(msgspec.Struct, frozen=True):
    """A run's prompt is written down: the run may start."""

    entry: RunState


class Next(msgspec.Struct, frozen=True):
    """A run's task is over, or never was: the session's next run may have its turn."""

    entry: RunState


Effect: TypeAlias = Tell | Decide | Answer | Steer | EndRun | WindDown | Launch | Next
