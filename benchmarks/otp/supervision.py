"""Costs of a start, a restart and a task under a supervisor.

Crashes are not logged (by the log level), because the restart is measured, not the log.
"""

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import trio

from benchmarks.effort import Effort, Figures, Stopwatch
from sessionmgr.otp import Actor, Cast, DynamicSupervisor, Ref, Supervisor, TaskSupervisor, child

CHILDREN: Final = 100
RESTARTS: Final = 100
WINDOW: Final = 0.001
"""A window too short for so many restarts that the limit is exceeded.

It also keeps the supervisor's history (times, crashes with tracebacks) as short as in production.
"""


class CrashCast(Cast):
    """Ask the actor to crash."""


class ReadyCounter:
    """Counts children that run; the driver waits until all do."""

    def __init__(self, crew: int) -> None:
        self.crew = crew
        self.refs: list[Ref[Actor]] = []
        self.complete = trio.Event()

    def clear(self) -> None:
        """Start at zero."""
        self.refs = []
        self.complete = trio.Event()

    def add(self, ref: Ref[Actor]) -> None:
        """Count a child that runs."""
        self.refs.append(ref)
        if len(self.refs) == self.crew:
            self.complete.set()


class RestartedActor(Actor):
    """Reports that it runs, and crashes on request."""

    def __init__(self, board: ReadyCounter) -> None:
        self.board = board

    async def init(self) -> None:
        self.board.add(self.ref)

    async def handle_cast(self, msg: object) -> None:
        raise RuntimeError("as you wish")


class IdleActor(Actor):
    """Waits for messages that never come."""


def start(effort: Effort) -> Figures:
    """Start actors, each running when `start_child` returns, a thousand at a time."""

    async def thousand(watch: Stopwatch, times: int) -> None:
        async with DynamicSupervisor() as crew:
            with watch:
                for _ in range(times):
                    await crew.start_child(child(IdleActor))

    async def main() -> Figures:
        return {"start": await effort.time_part(thousand, 1_000)}

    return trio.run(main)


async def _crash_and_wait(board: ReadyCounter, times: int) -> None:
    for _ in range(times):
        victim = board.refs[len(board.refs) // 2]
        board.clear()
        victim.cast(CrashCast())
        await board.complete.wait()


async def _kill_and_wait(board: ReadyCounter, times: int) -> None:
    for _ in range(times):
        victim = board.refs[0]
        board.clear()
        victim.kill()
        await board.complete.wait()


def restart_crash(effort: Effort) -> Figures:
    """Measure from the message that makes a child crash until its successor runs."""

    async def main() -> Figures:
        board = ReadyCounter(1)
        async with Supervisor(
            child(RestartedActor, board), max_restarts=RESTARTS, max_seconds=WINDOW
        ):
            return {"restart": await effort.time(partial(_crash_and_wait, board), 2_000)}

    return _quietly(main)


def restart_kill(effort: Effort) -> Figures:
    """Measure from a kill until the successor runs."""

    async def main() -> Figures:
        board = ReadyCounter(1)
        async with Supervisor(
            child(RestartedActor, board), max_restarts=RESTARTS, max_seconds=WINDOW
        ):
            return {"restart": await effort.time(partial(_kill_and_wait, board), 2_000)}

    return _quietly(main)


def one_for_all(effort: Effort) -> Figures:
    """Measure from the crash of one of a hundred until a hundred successors run; per child."""

    async def main() -> Figures:
        board = ReadyCounter(CHILDREN)
        crew = [child(RestartedActor, board) for _ in range(CHILDREN)]
        async with Supervisor(
            *crew, strategy="one_for_all", max_restarts=RESTARTS, max_seconds=WINDOW
        ):
            cost = await effort.time(partial(_crash_and_wait, board), 40)
        return {"per_child": cost / CHILDREN}

    return _quietly(main)


async def _one() -> int:
    return 1


def nolink(effort: Effort) -> Figures:
    """Start a task and wait for its result, one after the other."""

    async def one_by_one(tasks: TaskSupervisor, times: int) -> None:
        for _ in range(times):
            run = await tasks.async_nolink(_one)
            await run.result()

    async def main() -> Figures:
        async with TaskSupervisor() as tasks:
            return {"nolink": await effort.time(partial(one_by_one, tasks), 5_000)}

    return trio.run(main)


def _quietly(main: Callable[[], Awaitable[Figures]]) -> Figures:
    logging.getLogger("sessionmgr.otp").setLevel(logging.CRITICAL + 1)
    return trio.run(main)
