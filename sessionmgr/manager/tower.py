"""The clock tower: one task that watches all runs, and strikes where one is silent for too long.

A sign of life costs nothing here: a run is looked at when its next stroke might be due, and put
back if it has been heard of since.
"""

from __future__ import annotations

import heapq
import math
from itertools import count
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.manager.clocks import watch
from sessionmgr.manager.news import Noted
from sessionmgr.model import Cause, Failure, FailureKind, StallSuspected
from sessionmgr.provider.course import Stop

if TYPE_CHECKING:
    from sessionmgr.manager.entry import RunEntry
    from sessionmgr.model import Json

NEVER: Final = math.inf
SOON: Final = 0.05
"""How long to look away at least, so that nothing is looked at without end."""

FEW: Final = 64
"""So many are not worth a sweep."""


class Tower:
    """Watches runs from their dispatch to the end of their tasks."""

    def __init__(self) -> None:
        self._due: Final[list[tuple[float, int, RunEntry]]] = []
        self._numbers: Final = count()
        self._earlier: trio.Event | None = None
        self._sweep_at = FEW

    def watch(self, entry: RunEntry) -> None:
        """Look at a run soon: it is new here, or what explains its silence has changed."""
        self._put(entry, trio.current_time())

    async def strike(self) -> None:
        """Strike whenever it is due."""
        while True:
            now = trio.current_time()
            while self._due and self._due[0][0] <= now:
                _, number, entry = heapq.heappop(self._due)
                at = self._look(entry, now) if entry.watch_number == number else NEVER
                if at < NEVER:
                    self._put(entry, max(at, now + SOON))
            self._earlier = trio.Event()
            until = self._due[0][0] if self._due else NEVER
            with trio.move_on_at(until):
                await self._earlier.wait()

    def _put(self, entry: RunEntry, at: float) -> None:
        entry.watch_number = next(self._numbers)  # where it lay in the heap before, it is void
        if len(self._due) >= self._sweep_at:
            self._sweep()
        heapq.heappush(self._due, (at, entry.watch_number, entry))
        if self._earlier is not None and self._due[0][2] is entry:
            self._earlier.set()

    def _sweep(self) -> None:
        """Let go of runs that are over: their strokes may be due in half an hour."""
        self._due[:] = [
            (at, number, entry)
            for at, number, entry in self._due
            if entry.watch_number == number and not _needs_no_watch(entry)
        ]
        heapq.heapify(self._due)
        self._sweep_at = max(FEW, 2 * len(self._due))

    def _look(self, entry: RunEntry, now: float) -> float:
        """Strike if something is due; return when to look again."""
        course = entry.course
        if _needs_no_watch(entry):
            return NEVER
        if course.dispatched_at is None:
            return now + SOON
        due = self._heed_deadline(entry, course.dispatched_at, now)
        return NEVER if due is None else min(due, self._listen(entry, now))

    def _heed_deadline(self, entry: RunEntry, begun: float, now: float) -> float | None:
        """Strike if the deadline has come; else return when to look at it again."""
        limit = entry.clocks.of("deadline")
        if not limit:
            return NEVER
        if now >= begun + limit:
            _note(entry, "deadline", limit, now)
            detail = f"it was to be done in {limit:g} s"
            entry.course.end(Stop(cause=Cause.DEADLINE, detail=detail))
            return None
        if not entry.warned_of_deadline:
            if now < begun + limit / 2:
                return begun + limit / 2
            entry.warned_of_deadline = True
            _note(entry, "deadline", limit, now)
        return begun + limit

    def _listen(self, entry: RunEntry, now: float) -> float:
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
            return NEVER  # until that changes
        silent = now - course.last_sign
        if watched.act and silent >= watched.act:
            _note(entry, watched.clock, watched.act, now)
            detail = f"{watched.clock} clock: silent for {silent:g} s"
            failure = Failure(kind=FailureKind.STALLED, message=detail, retryable=True)
            course.end(Stop(cause=Cause.SILENCE, detail=detail, failure=failure))
            return now
        if watched.warn and silent >= watched.warn and entry.warned_at != course.last_sign:
            entry.warned_at = course.last_sign
            _note(entry, watched.clock, watched.act, now)
        to_come = [watched.act] if watched.act else []
        if watched.warn and entry.warned_at != course.last_sign:
            to_come.append(watched.warn)
        return course.last_sign + min(to_come, default=NEVER)


def _needs_no_watch(entry: RunEntry) -> bool:
    return entry.is_over or entry.course.over.is_set() or entry.course.stop is not None


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
