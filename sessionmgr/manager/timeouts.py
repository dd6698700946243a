"""The timer task: it enforces the idle, deadline and shutdown timeouts of all runs.

A sign of life costs nothing here: a run is looked at when its next timeout might be due, and put
back if there was one since. One task does it for all: a scope with a deadline for each run would
cost more than the rest of an idle session.

Our own process may be stopped for minutes (Ctrl-Z, SIGSTOP, a suspended machine), or its loop be
held up. The task looks at the clock every `STEP` seconds at least, so it finds that out; the time
does not count as silence, and nothing is enforced until what came meanwhile has been read.
"""

from __future__ import annotations

import heapq
from itertools import count
from math import inf
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.adapter import StopReason
from sessionmgr.manager import shutdown
from sessionmgr.manager.clocks import ActiveTimeout, active_timeout
from sessionmgr.manager.run_state import RunState
from sessionmgr.model import EndCause, Failure, FailureKind
from sessionmgr.trio_util_types import RepeatedEvent

if TYPE_CHECKING:
    from sessionmgr.manager.session_state import SessionState

SOON: Final = 0.05
"""How long to look away at least, so that nothing is looked at without end."""
STEP: Final = 6.0
"""How long to look away at most, while there is a run or a session to look at."""
STANDSTILL: Final = 1.0
"""By how much the task must be late for that to be a standstill, and how long it waits then."""
UNHEARD: Final = 1.0
"""How often to look for the first sign of life of a run without a start timeout."""
FEW: Final = 64
"""So many are not worth a sweep."""


class TimeoutScheduler:
    """Looks at runs from their start to the end of their tasks, and at sessions without work."""

    def __init__(self) -> None:
        self._due: Final[list[tuple[float, int]]] = []
        # What lies in the heap under a number that is not here any more is void.
        self._watched: Final[dict[int, RunState | SessionState]] = {}
        self._numbers: Final = count(1)
        self._earlier: Final = RepeatedEvent()
        self._sweep_at = FEW

    def watch_run(self, run: RunState) -> None:
        """Look at a run: it is new here, or what explains its silence or its end has changed."""
        # Nothing is enforced here: a sign of life may still be on its way to the recorder.
        at = self._check(run, trio.current_time(), acts=False)
        if run.watch_number in self._watched:
            if run.watched_until <= at < inf:
                return  # it is looked at before then, as nearly always
            del self._watched[run.watch_number]
        if at < inf:
            self._schedule_run(run, at)

    def _schedule_run(self, run: RunState, at: float) -> None:
        run.watch_number, run.watched_until = self._schedule(run, at), at

    def arm_idle(self, live: SessionState, seconds: float) -> None:
        """Tell a session's recorder when it has been without work for that long."""
        self._watched.pop(live.nap_number, None)
        live.nap_number = self._schedule(live, trio.current_time() + seconds)

    def disarm_idle(self, live: SessionState) -> None:
        """Forget a session that has no recorder any more."""
        self._watched.pop(live.nap_number, None)

    async def run(self) -> None:
        """Enforce what is due, for good."""
        until = trio.current_time()
        while True:
            now = trio.current_time()
            if now - until > STANDSTILL:
                self._exclude_standstill(now, now - until)
            self._run_due(now)
            until = min(self._due[0][0], now + STEP) if self._due else inf
            with trio.move_on_at(until):
                await self._earlier.wait()
                until = trio.current_time()

    def _run_due(self, now: float) -> None:
        while self._due and self._due[0][0] <= now:
            _, number = heapq.heappop(self._due)
            watched = self._watched.pop(number, None)
            if isinstance(watched, RunState):
                at = self._check(watched, now)
                if at < inf:
                    self._schedule_run(watched, max(at, now + SOON))
            elif watched is not None and not watched.has_work:
                watched.commands.sleep_if_idle()

    def _exclude_standstill(self, now: float, lost: float) -> None:
        """Take our own standstill out of all silences, and put off what has become due in it."""
        for watched in self._watched.values():
            if isinstance(watched, RunState):
                watched.exclude_standstill(lost, now)
        self._due[:] = [(max(at, now + STANDSTILL), number) for at, number in self._due]
        heapq.heapify(self._due)

    def _schedule(self, watched: RunState | SessionState, at: float) -> int:
        number = next(self._numbers)
        self._watched[number] = watched
        if len(self._due) >= self._sweep_at:
            self._sweep()
        heapq.heappush(self._due, (at, number))
        if self._due[0][1] == number:
            self._earlier.set()
        return number

    def _sweep(self) -> None:
        """Forget the runs that are over: their timeouts may be due in half an hour."""
        for number, watched in list(self._watched.items()):
            if isinstance(watched, RunState) and not watched.is_active and watched.due == inf:
                del self._watched[number]
        self._due[:] = [each for each in self._due if each[1] in self._watched]
        heapq.heapify(self._due)
        self._sweep_at = max(FEW, 2 * len(self._due))

    def _check(self, run: RunState, now: float, *, acts: bool = True) -> float:
        """Enforce what is due, or leave that to the next look; return when to look again."""
        if not run.is_active:
            if acts and now >= run.due:
                shutdown.end_phase(run)
            return run.due
        if run.dispatched_at is None:
            return inf
        live = run.session_state
        if live.committing_since is not None or live.inbox.pending or len(live.inbox):
            # Its signs of life may not be stored yet: while the store keeps us waiting, so does
            # every silence.
            run.excuse_silence(now)
        due = self._check_deadline(run, run.dispatched_at, now, acts)
        return inf if due is None else min(due, self._check_silence(run, now, acts))

    def _check_deadline(self, run: RunState, begun: float, now: float, acts: bool) -> float | None:
        """End a run whose deadline has come; else return when to look at it again."""
        limit = run.plan.clocks.of("deadline")
        if not limit:
            return inf
        if acts and now >= begun + limit:
            run.note_stall("deadline", limit)
            detail = f"the deadline of {limit:g} s has passed"
            run.end(StopReason(cause=EndCause.DEADLINE, detail=detail))
            return None  # its shutdown has it watched anew
        if not run.warned_of_deadline:
            if not acts or now < begun + limit / 2:
                return begun + limit / 2
            run.warned_of_deadline = True
            run.note_stall("deadline", limit)
        return begun + limit

    def _check_silence(self, run: RunState, now: float, acts: bool) -> float:
        """Warn of a silent run, or end it; return when to look at it again."""
        watched = active_timeout(run.run, run.plan.clocks, seen=run.seen, in_turn=run.in_turn)
        if watched is None:
            # Until that changes, of which we are told; but not of a sign of life without an event.
            return inf if run.seen else now + UNHEARD
        if acts and self._enforce(run, watched, now - run.last_sign):
            return inf
        to_come = [watched.act] if watched.act else []
        if watched.warn and run.warned_at != run.last_sign:
            to_come.append(watched.warn)
        return run.last_sign + min(to_come, default=inf)

    def _enforce(self, run: RunState, watched: ActiveTimeout, silent: float) -> bool:
        """Warn if it has been silent for long, or end it; return whether it was ended."""
        is_end = bool(watched.act) and silent >= watched.act
        is_late = bool(watched.warn) and silent >= watched.warn
        if not is_end and (not is_late or run.warned_at == run.last_sign):
            return False
        run.warned_at = run.last_sign
        run.note_stall(watched.clock, watched.act)
        if is_end:
            detail = f"{watched.clock} clock: silent for {silent:g} s"
            failure = Failure(
                kind=FailureKind.STALLED,
                message=detail,
                retryable=True,
                resumable=run.run.provider_session_id is not None,
            )
            run.end(StopReason(cause=EndCause.SILENCE, detail=detail, failure=failure))
        return is_end
