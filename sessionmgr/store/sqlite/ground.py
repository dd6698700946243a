"""What all of the SQLite store stands on: who writes, who reads, and who is told."""

from __future__ import annotations

from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Final,
    Literal,
    ParamSpec,
    TypeAlias,
    TypeVar,
    cast,
)

import outcome
import trio

from sessionmgr.errors import StoreClosed
from sessionmgr.store.bells import Bells
from sessionmgr.store.sqlite.foreign import ForeignWatch, Glance
from sessionmgr.store.sqlite.group import GroupWriter
from sessionmgr.store.sqlite.hand import Reader, Writer
from sessionmgr.store.sqlite.lane import InlineLane, Job, Lane, ThreadLane
from sessionmgr.store.sqlite.room import Room

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from sqlite3 import Connection
    from types import CoroutineType

    from sessionmgr.store.bells import Key
    from sessionmgr.store.sqlite.connection import Options

P = ParamSpec("P")
T = TypeVar("T")

Executor: TypeAlias = Literal["thread", "inline"]
"""Where SQL runs: in threads of its own, or in the task that wants it, for virtual time."""

READERS: Final = 2
PENDING_ROWS: Final = 16_384
PENDING_BYTES: Final = 64 * 1024 * 1024
"""So much may wait to be written; who has more waits for room."""
GRACE: Final = 5.0
"""Seconds that closing waits for a disk."""


class Ground:
    """One writer, some readers, and the bells that ring when something is committed."""

    def __init__(self, options: Options, executor: Executor, poll: float | None) -> None:
        self._options = options
        self._bells = Bells()
        self._room = Room(PENDING_ROWS, PENDING_BYTES)
        self._glance = Glance()
        self._watch = ForeignWatch(self._bells, self._look, poll)
        self._closed = False
        self.commits = 0
        """How many transactions have been written, or refused by the disk."""
        self._group = GroupWriter()
        writer = Writer(options, self._group.forget)
        readers = [Reader(options) for _ in range(READERS)]
        self._writing: Lane
        self._reading: Lane
        if executor == "thread":
            self._writing = ThreadLane("sessionmgr-writer", [writer], self._written)
            self._reading = ThreadLane("sessionmgr-reader", readers, _nothing)
        else:
            self._writing = InlineLane(writer, self._written)
            self._reading = InlineLane(readers[0], _nothing)

    @property
    def path(self) -> Path:
        """The file."""
        return self._options.path

    @property
    def pending(self) -> tuple[int, int, int]:
        """Rows and bytes that are handed over and not written yet, and how many wait for room."""
        return self._room.rows, self._room.size, self._room.waiting

    async def start(self) -> None:
        """Open the file, or make it."""
        await self._writing.start()
        await self._reading.start()

    async def aclose(self) -> None:
        """Store what was handed over, and close; a disk that hangs is waited for in bounds."""
        self._closed = True
        with trio.move_on_after(GRACE, shield=True):
            await self._reading.close()
            await self._writing.close()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed(str(self.path))

    async def write(
        self,
        work: Callable[[Connection], T],
        *,
        rows: int = 1,
        size: int = 0,
        rings: Sequence[tuple[Key, int]] = (),
    ) -> T:
        """Have something written, with what else is to be written now, in one transaction."""
        self._check_open()
        await self._room.take(rows, size)
        if self._closed:
            self._room.give(rows, size)
            self._check_open()
        return cast("T", await self._writing.do(Job(work, rows, size, rings)))

    def _written(self, jobs: Sequence[Job]) -> None:
        """Tell those who wait for it what is committed now, and not before."""
        self.commits += 1
        for job in jobs:
            self._room.give(job.rows, job.size)
            if job.rings and isinstance(job.outcome, outcome.Value):
                for key, number in job.rings:
                    self._bells.ring(key, number)

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Have something read, on one state of the file."""
        self._check_open()
        return cast("T", await self._reading.do(Job(work)))

    async def _look(self, awaited: Mapping[Key, int]) -> Sequence[tuple[Key, int]]:
        if self._group.saw_no_others():  # a job wakes a thread, which costs more than its work
            await trio.lowlevel.checkpoint()
            return ()
        glance = self._glance
        try:
            return await self.read(lambda connection: glance.look(connection, awaited))
        except BaseException:  # what it has found, or finds yet, reaches no waiter
            self._glance = Glance()
            self._group.look_again()
            raise

    async def _wait(self, key: Key, after: int, read: Callable[[Connection], int]) -> int:
        """Wait until `key` passes `after`; `read` says how far it is."""
        # Listen first: what is committed while we read rings already.
        with self._bells.listen(key, after) as waiter:
            waiter.ring(await self.read(read))
            return await self._watch.wait(waiter)


def _nothing(jobs: Sequence[Job]) -> None:
    """Nobody but the reader wants to know that something was read."""


def reads(
    query: Callable[Concatenate[Connection, P], T],
) -> Callable[Concatenate[Ground, P], CoroutineType[Any, Any, T]]:
    """Make a method of a query: with its parameters, but for the connection."""

    async def method(self: Ground, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.read(lambda connection: query(connection, *args, **kwargs))

    method.__doc__ = query.__doc__
    return method  # type: ignore[return-value]  # what it returns is one


def writes(
    change: Callable[Concatenate[Connection, P], T],
) -> Callable[Concatenate[Ground, P], CoroutineType[Any, Any, T]]:
    """Make a method of a change, likewise."""

    async def method(self: Ground, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.write(lambda connection: change(connection, *args, **kwargs))

    method.__doc__ = change.__doc__
    return method  # type: ignore[return-value]  # what it returns is one
