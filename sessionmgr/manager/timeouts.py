"""The timer task: it enforces the idle, deadline and shutdown timeouts of all runs.

A sign of life costs nothing here: the timer examines a run when its next timeout might be due, and
schedules it again if there was a sign since. One task serves all runs, because a cancel scope with
a deadline for each run would cost more than the rest of an idle session.

The process may be stopped for minutes (Ctrl-Z, SIGSTOP, a suspended machine), or its event loop be
blocked. The task wakes every `STEP` seconds at least, so it notices such a standstill. That time
does not count as silence, and nothing is enforced until the pending output has been read.
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
"""Minimum number of seconds between two examinations, so that the task does not spin."""
STEP: Final = 6.0
"""Maximum number of seconds between two wake-ups, while something is scheduled."""
STANDSTILL: Final = 1.0
"""The lateness in seconds that counts as a standstill, and the delay after one."""
UNHEARD: Final = 1.0
"""Seconds between two checks for the first sign of life of a run without a start timeout."""
FEW: Final = 64
"""The size of the heap below which it is not swept."""


class TimeoutScheduler:
    """The timer of runs, from the start to the end of their tasks, and of idle sessions."""

    def __init__(self) -> None:
        self._due: Final[list[tuple[float, int]]] = []
        # A number in the heap that is not a key here is void.
        self._watched: Final[dict[int, RunState | SessionState]] = {}
        self._numbers: Final = count(1)
        self._earlier: Final = RepeatedEvent()
        self._sweep_at = FEW

    def watch_run(self, run: RunState) -> None:
        """Schedule a run that is new, or whose activity or shutdown phase has changed."""
        # Nothing is enforced here: a sign of life may still be on its way to the recorder.
        at = self._check(run, trio.current_time(), acts=False)
        if run.watch_number in self._watched:
            if run.watched_until <= at < inf:
                return  # an earlier examination is scheduled, as nearly always
            del self._watched[run.watch_number]
        if at < inf:
            self._schedule_run(run, at)

    def _schedule_run(self, run: RunState, at: float) -> None:
        run.watch_number, run.watched_until = self._schedule(run, at), at

    def arm_idle(self, live: SessionState, seconds: float) -> None:
        """Send a session's recorder the idle command if it has no work after these seconds."""
        self._watched.pop(live.nap_number, None)
        live.nap_number = self._schedule(live, trio.current_time() + seconds)

    def disarm_idle(self, live: SessionState) -> None:
        """Cancel the idle timeout of a session that has no recorder any more."""
        self._watched.pop(live.nap_number, None)

    async def run(self) -> None:
        """Enforce timeouts as they become due, forever."""
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
        """Subtract our own standstill from all silences; delay the timeouts that it made due."""
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
        """Remove runs that are over: their timeouts may be due only in half an hour."""
        for number, watched in list(self._watched.items()):
            if isinstance(watched, RunState) and not watched.is_active and watched.due == inf:
                del self._watched[number]
        self._due[:] = [each for each in self._due if each[1] in self._watched]
        heapq.heapify(self._due)
        self._sweep_at = max(FEW, 2 * len(self._due))

    def _check(self, run: RunState, now: float, *, acts: bool = True) -> float:
        """Enforce what is due if `acts`; return when to examine the run again."""
        if not run.is_active:
            if acts and now >= run.due:
                shutdown.end_phase(run)
            return run.due
        if run.dispatched_at is None:
            return inf
        live = run.session_state
        if live.committing_since is not None or live.inbox.pending or len(live.inbox):
            # Its signs of life may not be stored yet: no silence counts while the store is slow.
            run.excuse_silence(now)
        due = self._check_deadline(run, run.dispatched_at, now, acts)
        return inf if due is None else min(due, self._check_silence(run, now, acts))

    def _check_deadline(self, run: RunState, begun: float, now: float, acts: bool) -> float | None:
        """End a run at its deadline, or warn at half of it; return when to examine it again."""
        limit = run.plan.clocks.of("deadline")
        if not limit:
            return inf
        if acts and now >= begun + limit:
            shutdown.note_stall(run, "deadline", limit)
            detail = f"the deadline of {limit:g} s has passed"
            run.end(StopReason(cause=EndCause.DEADLINE, detail=detail))
            return None  # its shutdown schedules it
        if not run.warned_of_deadline:
            if not acts or now < begun + limit / 2:
                return begun + limit / 2
            run.warned_of_deadline = True
            shutdown.note_stall(run, "deadline", limit)
        return begun + limit

    def _check_silence(self, run: RunState, now: float, acts: bool) -> float:
        """Warn of a silent run, or end it; return when to examine it again."""
        watched = active_timeout(run.run, run.plan.clocks, seen=run.seen, in_turn=run.in_turn)
        if watched is None:
            # A change of its activity schedules it again; a sign of life without an event does not.
            return inf if run.seen else now + UNHEARD
        if acts and self._enforce(run, watched, now - run.last_sign):
            return inf
        to_come = [watched.act] if watched.act else []
        if watched.warn and run.warned_at != run.last_sign:
            to_come.append(watched.warn)
        return run.last_sign + min(to_come, default=inf)

    def _enforce(self, run: RunState, watched: ActiveTimeout, silent: float) -> bool:
        """Warn if the run is silent for long, or end it; return whether it was ended."""
        is_end = bool(watched.act) and silent >= watched.act
        is_late = bool(watched.warn) and silent >= watched.warn
        if not is_end and (not is_late or run.warned_at == run.last_sign):
            return False
        run.warned_at = run.last_sign
        shutdown.note_stall(run, watched.clock, watched.act)
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
