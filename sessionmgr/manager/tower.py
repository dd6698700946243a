"""The clock tower: one task that watches all runs, and strikes where one is silent for too long.

A sign of life costs nothing here: a run is looked at when its next stroke might be due, and put
back if it has been heard of since. What else is done when a time has come is done here, too: a
scope with a deadline for each would cost more than all the rest of a session at rest.
"""

from __future__ import annotations

import heapq
import math
from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from sessionmgr.adapter.run_control import Stop
from sessionmgr.manager.clocks import Watch, watch
from sessionmgr.manager.entry import RunEntry
from sessionmgr.manager.news import QUIET, Noted, Overdue
from sessionmgr.manager.run_state import Step
from sessionmgr.model import Cause, Failure, FailureKind, StallSuspected

if TYPE_CHECKING:
    from sessionmgr.manager.live import Live
    from sessionmgr.model import Json

NEVER: Final = math.inf
SOON: Final = 0.05
"""How long to look away at least, so that nothing is looked at without end."""
UNWINDING: Final = 0.25
"""Seconds that a task which was cut at the end of its grace has to leave before its run's end."""
UNHEARD: Final = 1.0
"""How often to look for the first sign of life of a run without a clock for that."""


class Winding(NamedTuple):
    """How far a run is that winds down: when the next step is due, and whether it is the last."""

    at: float
    is_last: bool


FEW: Final = 64
"""So many are not worth a sweep."""


class Tower:
    """Watches runs from their dispatch to the end of their tasks, and sessions without work."""

    def __init__(self) -> None:
        self._due: Final[list[tuple[float, int]]] = []
        # What lies in the heap under a number that is not here any more is void.
        self._watched: Final[dict[int, RunEntry | Live]] = {}
        self._numbers: Final = count(1)
        self._earlier: trio.Event | None = None
        self._sweep_at = FEW

    def watch(self, entry: RunEntry) -> None:
        """Look at a run: it is new here, or what explains its silence has changed."""
        self._watched.pop(entry.watch_number, None)
        # Nothing is struck here: what has just come may still be on its way to be heard.
        at = self._look(entry, trio.current_time(), strikes=False)
        if at < NEVER:
            entry.watch_number = self._put(entry, at)

    def wind_down(self, entry: RunEntry) -> None:
        """See to it that a run's task ends; what goes on beyond all bounds is left behind."""
        if not entry.course.over.is_set():
            now, course = trio.current_time(), entry.course
            entry.winds_down = (
                Winding(now + course.grace, is_last=False)  # its task may still tidy up
                if entry.is_over
                else Winding(course.claimed_at + course.grace + UNWINDING, is_last=True)
            )
        self.watch(entry)

    def nap(self, live: Live, seconds: float) -> None:
        """Tell a session's keeper when it has been without work for that long."""
        self._watched.pop(live.nap_number, None)
        live.nap_number = self._put(live, trio.current_time() + seconds)

    def forget(self, live: Live) -> None:
        """Let go of a session that nobody keeps any more."""
        self._watched.pop(live.nap_number, None)

    async def strike(self) -> None:
        """Strike whenever it is due."""
        while True:
            now = trio.current_time()
            while self._due and self._due[0][0] <= now:
                _, number = heapq.heappop(self._due)
                watched = self._watched.pop(number, None)
                if isinstance(watched, RunEntry):
                    at = self._look(watched, now)
                    if at < NEVER:
                        watched.watch_number = self._put(watched, max(at, now + SOON))
                elif watched is not None and not watched.has_work:
                    watched.intake.put(QUIET)
            self._earlier = trio.Event()
            until = self._due[0][0] if self._due else NEVER
            with trio.move_on_at(until):
                await self._earlier.wait()

    def _put(self, watched: RunEntry | Live, at: float) -> int:
        number = next(self._numbers)
        self._watched[number] = watched
        if len(self._due) >= self._sweep_at:
            self._sweep()
        heapq.heappush(self._due, (at, number))
        if self._earlier is not None and self._due[0][1] == number:
            self._earlier.set()
        return number

    def _sweep(self) -> None:
        """Let go of runs that are over: their strokes may be due in half an hour."""
        for number, watched in list(self._watched.items()):
            if isinstance(watched, RunEntry) and _needs_no_watch(watched):
                del self._watched[number]
        self._due[:] = [each for each in self._due if each[1] in self._watched]
        heapq.heapify(self._due)
        self._sweep_at = max(FEW, 2 * len(self._due))

    def _look(self, entry: RunEntry, now: float, *, strikes: bool = True) -> float:
        """Strike if something is due, or leave that to the next look; return when to look again."""
        course = entry.course
        entry.check()
        if _needs_no_watch(entry) or course.dispatched_at is None:
            return NEVER
        if entry.winds_down is not None:
            return self._push(entry, entry.winds_down, now) if strikes else entry.winds_down.at
        due = self._heed_deadline(entry, course.dispatched_at, now, strikes)
        return NEVER if due is None else min(due, self._listen(entry, now, strikes))

    def _heed_deadline(
        self, entry: RunEntry, begun: float, now: float, strikes: bool
    ) -> float | None:
        """Strike if the deadline has come; else return when to look at it again."""
        limit = entry.clocks.of("deadline")
        if not limit:
            return NEVER
        if strikes and now >= begun + limit:
            _note(entry, "deadline", limit, now)
            detail = f"it was to be done in {limit:g} s"
            entry.course.end(Stop(cause=Cause.DEADLINE, detail=detail))
            return None
        if not entry.warned_of_deadline:
            if not strikes or now < begun + limit / 2:
                return begun + limit / 2
            entry.warned_of_deadline = True
            _note(entry, "deadline", limit, now)
        return begun + limit

    def _push(self, entry: RunEntry, winding: Winding, now: float) -> float:
        """Have a task end that has not done so in time."""
        course = entry.course
        if now < winding.at:
            return winding.at
        if winding.is_last:
            if not entry.is_over and not course.was_asked_to_end:  # else that is on record
                _note(entry, "close", course.grace, now)
            course.cut()
            entry.winds_down = Winding(NEVER, is_last=True)
            entry.move(Step.GRACE_OVER)
            entry.live.intake.put(Overdue(entry))
            return NEVER
        _note(entry, "close", course.grace, now)
        course.cut()
        entry.winds_down = Winding(winding.at + course.grace, is_last=True)
        return entry.winds_down.at

    def _listen(self, entry: RunEntry, now: float, strikes: bool) -> float:
        course, live = entry.course, entry.live
        if live.committing_since is not None or live.intake.pending:
            # It may have spoken, and not been heard: while the store keeps us waiting, so does
            # every silence.
            course.last_sign = max(course.last_sign, now)
        watched = watch(
            entry.run,
            entry.clocks,
            seen=course.seen,
            in_turn=entry.in_turn,
        )
        if watched is None:
            # Until that changes, of which we are told; but not of a sign of life without a word.
            return NEVER if course.seen else now + UNHEARD
        if strikes and self._speak(entry, watched, now - course.last_sign):
            return NEVER
        to_come = [watched.act] if watched.act else []
        if watched.warn and entry.warned_at != course.last_sign:
            to_come.append(watched.warn)
        return course.last_sign + min(to_come, default=NEVER)

    def _speak(self, entry: RunEntry, watched: Watch, silent: float) -> bool:
        """Say that it has been silent for long, if it has; and whether that is the end of it."""
        course = entry.course
        is_end = bool(watched.act) and silent >= watched.act
        is_late = bool(watched.warn) and silent >= watched.warn
        if not is_end and (not is_late or entry.warned_at == course.last_sign):
            return False
        entry.warned_at = course.last_sign
        _note(entry, watched.clock, watched.act, trio.current_time())
        if is_end:
            detail = f"{watched.clock} clock: silent for {silent:g} s"
            failure = Failure(
                kind=FailureKind.STALLED,
                message=detail,
                retryable=True,
                resumable=entry.run.provider_session_id is not None,
            )
            course.end(Stop(cause=Cause.SILENCE, detail=detail, failure=failure))
        return is_end


def _needs_no_watch(entry: RunEntry) -> bool:
    course = entry.course
    if course.over.is_set():
        return True
    return entry.winds_down is None and (entry.is_over or course.stop is not None)


def _note(entry: RunEntry, clock: str, limit: float, now: float) -> None:
    """Put on record that a clock warns, or strikes, and what there was to be seen."""
    course, run = entry.course, entry.run
    begun = now if course.dispatched_at is None else course.dispatched_at
    evidence: dict[str, Json] = {
        "clock": clock,
        "limit": limit,
        "running_for": round(now - begun, 3),
        "open_tools": list(run.open_tools.values()),
        "open_approvals": list(run.open_approvals),
        "open_tasks": run.open_tasks,
        "turns": run.turns,
    }
    silent = round(now - course.last_sign, 3)
    stalled = StallSuspected(state=clock, silent_for=silent, evidence=evidence, synthetic=True)
    entry.live.intake.put(Noted(entry, (stalled,)))
