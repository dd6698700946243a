"""Where work on a connection is done: in a thread of its own, or inline.

Work is handed over as jobs, and whoever awaits one may be cancelled at any time: a disk that
hangs then holds up a thread, and no task. Inline, the very same work is done in the caller's
task: for virtual time, where one seed is to give one schedule.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

import outcome
import trio
from trio.lowlevel import (
    Abort,
    Task,
    TrioToken,
    cancel_shielded_checkpoint,
    checkpoint_if_cancelled,
    current_task,
    current_trio_token,
    reschedule,
    wait_task_rescheduled,
)

if TYPE_CHECKING:
    import sqlite3

Outcome: TypeAlias = outcome.Outcome[object]
Done: TypeAlias = Callable[["Sequence[Job]"], None]

IDLE: Final = 0.2
"""Seconds without work after which there is time for what can wait."""


class Job:
    """Some work on a connection, how much it is, and who waits for it."""

    __slots__ = ("abandoned", "outcome", "rings", "rows", "size", "task", "work")

    def __init__(
        self,
        work: Callable[[sqlite3.Connection], object],
        rows: int = 1,
        size: int = 0,
        rings: Sequence[tuple[tuple[str, str], int]] = (),
    ) -> None:
        self.work = work
        self.rows = rows
        self.size = size
        self.rings = rings
        """Whom to tell what, once the work is done."""
        self.task: Task | None = None
        self.outcome: Outcome | None = None
        self.abandoned = False


class Hand(Protocol):
    """Who does the work: one connection's owner. All but `rows` runs in the lane's thread."""

    @property
    def rows(self) -> int:
        """So many rows of jobs are taken together."""
        ...

    def open(self) -> None:
        """Open the connection."""
        ...

    def work(self, jobs: Sequence[Job]) -> None:
        """Do the jobs and note their outcomes; what it raises is the outcome of all of them."""
        ...

    def rest(self) -> bool:
        """Do something that can wait; say whether more of it is left."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class Lane(Protocol):
    """A way to get jobs done."""

    async def start(self) -> None:
        """Open what is worked on."""
        ...

    async def do(self, job: Job) -> object:
        """Return what the job's work returns, or raise what it raises.

        If this is cancelled, the work may have been done, or may yet be.
        """
        ...

    async def close(self) -> None:
        """Finish what was handed over, and close."""
        ...


class InlineLane:
    """Does each job at once, in the task that wants it."""

    def __init__(self, hand: Hand, done: Done) -> None:
        self._hand = hand
        self._done = done
        self._is_open = False

    async def start(self) -> None:
        """Open what is worked on."""
        await checkpoint_if_cancelled()
        self._hand.open()
        self._is_open = True

    async def do(self, job: Job) -> object:
        """Do the job."""
        _work(self._hand, [job])
        self._done([job])
        await cancel_shielded_checkpoint()  # what is stored is to be known
        assert job.outcome is not None
        return job.outcome.unwrap()

    async def close(self) -> None:
        """Close what was worked on."""
        if self._is_open:
            self._hand.close()
        await cancel_shielded_checkpoint()


def _work(hand: Hand, jobs: Sequence[Job]) -> None:
    worked = outcome.capture(hand.work, jobs)
    if isinstance(worked, outcome.Error):  # a mistake of ours: nobody is to wait for ever
        for job in jobs:
            job.outcome = outcome.Error(worked.error)


class ThreadLane:
    """Does jobs in one thread per hand, in the order they came."""

    def __init__(self, name: str, hands: Sequence[Hand], done: Done) -> None:
        self._name = name
        self._hands = hands
        self._done = done
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._token: TrioToken | None = None
        self._running = 0
        self._ended = trio.Event()

    async def start(self) -> None:
        """Start the threads, and open what they work on."""
        self._token = current_trio_token()
        opening: list[Job] = []
        for hand in self._hands:
            job = Job(lambda _: None)
            opening.append(job)
            # A daemon: a disk that hangs must not keep the program from ending.
            target = threading.Thread(
                target=self._serve, args=(hand, job), name=self._name, daemon=True
            )
            target.start()
            self._running += 1
        for job in opening:
            if job.outcome is None:
                await self._sleep(job)
            else:
                job.outcome.unwrap()

    async def do(self, job: Job) -> object:
        """Queue the job and wait for its outcome."""
        self._queue.put(job)
        return await self._sleep(job)

    async def _sleep(self, job: Job) -> object:
        def abort(_: object) -> Abort:
            job.task = None
            job.abandoned = True
            return Abort.SUCCEEDED

        job.task = current_task()
        return await wait_task_rescheduled(abort)

    async def close(self) -> None:
        """Wait until all jobs are done and the threads have ended."""
        for _ in self._hands:
            self._queue.put(None)
        if self._running:
            await self._ended.wait()

    # --- in the thread ---------------------------------------------------------------------------

    def _serve(self, hand: Hand, opening: Job) -> None:
        opening.outcome = outcome.capture(hand.open)
        self._post(self._wake, [opening])
        if isinstance(opening.outcome, outcome.Value):
            more_to_come = True
            while more_to_come:
                jobs, more_to_come = self._take(hand)
                if jobs:
                    _work(hand, jobs)
                    self._post(self._answer, jobs)
            outcome.capture(hand.close)
        self._post(self._end)

    def _take(self, hand: Hand) -> tuple[list[Job], bool]:
        """Wait for a job; return it with those that came meanwhile."""
        job = self._next(hand)
        jobs: list[Job] = []
        rows = 0
        while job is not None:
            jobs.append(job)
            rows += job.rows
            if rows >= hand.rows:
                return jobs, True
            try:
                job = self._queue.get_nowait()
            except queue.Empty:
                return jobs, True
        return jobs, False

    def _next(self, hand: Hand) -> Job | None:
        more = True
        while more:
            try:
                return self._queue.get(timeout=IDLE)
            except queue.Empty:
                more = hand.rest()
        return self._queue.get()

    def _post(self, sync: Callable[..., object], *args: object) -> None:
        assert self._token is not None
        with suppress(trio.RunFinishedError):  # nobody is left to be told
            self._token.run_sync_soon(sync, *args)

    # --- back in trio ----------------------------------------------------------------------------

    def _answer(self, jobs: Sequence[Job]) -> None:
        self._done(jobs)
        self._wake(jobs)

    def _wake(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            if job.task is not None:
                assert job.outcome is not None
                reschedule(job.task, job.outcome)
                job.task = None

    def _end(self) -> None:
        self._running -= 1
        if not self._running:
            self._ended.set()
