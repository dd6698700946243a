"""What is known of a run that was admitted here, until nobody holds it any more."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

from sessionmgr.adapter.lazy_event import Latch
from sessionmgr.adapter.run_control import Course
from sessionmgr.manager.run_state import TRANSITIONS, Phase, Step
from sessionmgr.manager.streams import Streams
from sessionmgr.model import TERMINAL, Run

if TYPE_CHECKING:
    from sessionmgr.adapter.question import Approve
    from sessionmgr.adapter.run_context import RunSpec
    from sessionmgr.manager.clocks import Clocks
    from sessionmgr.manager.live import Live
    from sessionmgr.manager.plan import RunWish
    from sessionmgr.manager.tower import Winding
    from sessionmgr.model import Json, Negotiation


class RunEntry:
    """A run: what it is to do, how it stands in the store, and its course."""

    __slots__ = (
        "admitted",
        "approve",
        "asked",
        "at_once",
        "clocks",
        "course",
        "dispatched",
        "ended",
        "explained",
        "follow_up",
        "in_turn",
        "live",
        "message_id",
        "metadata",
        "negotiation",
        "pause",
        "phase",
        "run",
        "secrets",
        "spec",
        "stopped_in",
        "streams",
        "undelivered",
        "warned_at",
        "warned_of_deadline",
        "watch_number",
        "winds_down",
        "wish",
    )

    def __init__(
        self,
        *,
        live: Live,
        run_id: str,
        spec: RunSpec,
        clocks: Clocks,
        negotiation: Negotiation,
        wish: RunWish,
        approve: Approve | None,
        metadata: dict[str, Json],
        secrets: tuple[str, ...] = (),
        asked: dict[str, Json],
        follow_up: bool = False,
        message_id: str,
    ) -> None:
        self.live: Final = live
        self.spec = spec
        self.clocks: Final = clocks
        self.negotiation = negotiation
        self.wish: Final = wish
        self.approve: Final = approve
        self.metadata: Final = metadata
        self.secrets: Final = secrets
        """The secrets of its environment and options, which must not be stored or shown."""
        self.asked: Final = asked
        """The part of the wish that is stored for a follow-up."""
        self.follow_up: Final = follow_up
        self.message_id: Final = message_id
        self.run = Run(id=run_id, session_id=live.session.id, provider=live.session.provider)
        """The record, as far as it is stored."""
        self.phase = Phase.WAITING
        self.course: Final = Course(
            run_id=run_id,
            session_id=live.session.id,
            provider=live.session.provider,
            intake=live.intake,
            grace=clocks.of("close"),
        )
        self.course.moved = self.move
        self.admitted: Final = Latch()
        self.ended: Final = Latch()
        self.at_once = False
        """Whether it did not have to wait for its turn."""
        self.dispatched = False
        """Whether it has had its turn, or is having it."""
        self.in_turn = True
        self.streams: Final = Streams()
        """Its streams: ends of deltas that may be the beginnings of secrets."""
        self.undelivered: dict[str, str] = {}
        """Messages to the turn that is on, whose fate is not known: id and content."""
        self.watch_number = 0
        """Under which the clock tower has it."""
        self.winds_down: Winding | None = None
        self.warned_at: float | None = None
        self.warned_of_deadline = False
        self.explained: tuple[object, ...] = ()
        """What was known to explain a silence when it was last looked at."""
        self.stopped_in: tuple[str, ...] = ()
        """Tools whose calls were running when it was stopped."""
        self.pause: PauseOrder | None = None

    @property
    def id(self) -> str:
        """The run's id."""
        return self.run.id

    def move(self, step: str) -> None:
        """Take a step in the phase table, where there is one, and compare it with the flags."""
        self.phase = TRANSITIONS[self.phase].get(Step(step), self.phase)
        self.check()

    def check(self) -> None:
        """Assert that the phase is what the flags say."""
        told = self._phase_of_flags()
        assert self.phase is told, f"{self.id} is {self.phase}, and {told} by its flags"

    def _phase_of_flags(self) -> Phase:
        course = self.course
        was_abandoned = self.winds_down is not None and self.winds_down.at == inf
        if course.over.is_set() or was_abandoned:
            return Phase.OVER
        if course.stop is not None and not self.dispatched:
            return Phase.OVER
        if course.is_cut:
            return Phase.CUT
        if course.stop is not None:
            return Phase.STOPPING
        if course.dispatched_at is not None:
            return Phase.RUNNING
        return Phase.DISPATCHED if self.dispatched else Phase.WAITING

    @property
    def is_over(self) -> bool:
        """Whether its terminal event is stored."""
        return self.run.status in TERMINAL


class PauseOrder:
    """That a run is to be paused, and what its snapshot shall say."""

    def __init__(
        self,
        snapshot_id: str,
        node: str | None,
        state: Json,
        message: str | None,
        asked: dict[str, Json],
    ) -> None:
        self.snapshot_id: Final = snapshot_id
        self.node: Final = node
        self.state: Final = state
        self.message: Final = message
        self.asked: Final = asked
