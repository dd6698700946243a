"""A child tree as its owner sees it: three pipes, and the line to the guard.

The strategy: no task and no timer for a tree. The switchboard reads the line and writes what it
says in here; whoever waits is parked until something was written. The end of the line without
the word that the tree is empty means that the guard was killed, and then its keeper sweeps.
"""

from __future__ import annotations

import contextlib
import socket
from array import array
from enum import Enum
from typing import TYPE_CHECKING, Final, Protocol

import trio

from sessionmgr.process.course import Course
from sessionmgr.process.facts import Emptied, LeftRunning
from sessionmgr.process.failure import failure_of
from sessionmgr.process.mark import text_of
from sessionmgr.process.packet import Unpacker, pack

if TYPE_CHECKING:
    import signal
    from collections.abc import Sequence

    from sessionmgr.errors import SpawnFailed
    from sessionmgr.process.facts import ExitFacts, LeaderExit
    from sessionmgr.process.pipes import Pipes
    from sessionmgr.process.switchboard import Switchboard

_DEADLY: Final = (9, 15)


class Stage(Enum):
    """How far the start of a tree has come."""

    PLANNED = "planned"
    READY = "ready"
    """It has a guard, which waits to hear what to start."""
    ASKED = "asked"
    STARTED = "started"
    FAILED = "failed"


class Keeper(Protocol):
    """Whoever looks after trees whose guards cannot."""

    @property
    def switchboard(self) -> Switchboard:
        """Where their lines come together."""
        ...

    def lost(self, tree: GuardedTree) -> None:
        """Take note that a guard was killed; `tree.swept` is to be called in the end."""
        ...

    async def clear(self, tree: GuardedTree) -> None:
        """Kill what there is of a tree, its guard too, and call `tree.swept`."""
        ...

    def forget(self, tree: GuardedTree) -> None:
        """Take note that the tree is given up."""
        ...

    def take_back(self, tree: GuardedTree, line: socket.socket) -> bool:
        """Keep the line to a guard that has no tree any more; False if it is not wanted."""
        ...


class GuardedTree:
    """A tree with a guard of its own, which proves its end. It fits `ChildTree`."""

    __slots__ = (
        "_course", "_heard", "_is_killed", "_keeper", "_left", "_line", "_pipes", "crash",
        "failure", "guard", "mark", "pid", "stage", "started", "warden",
    )  # fmt: skip

    def __init__(self, mark: int, line: socket.socket, keeper: Keeper, warden: int) -> None:
        self.mark = mark
        self.warden = warden
        """The pid of the warden that made its guard."""
        self.pid = 0
        self.started = 0
        """When the program's process began, in ticks since the boot."""
        self.guard = (0, 0)
        """The pid and the start of the guard."""
        self.stage = Stage.PLANNED
        self.failure: SpawnFailed | None = None
        self.crash = ""
        """What a guard said that broke by itself, which none should."""
        self._pipes: list[trio.lowlevel.FdStream | None] = []
        self._line: socket.socket | None = line
        self._is_killed = False
        self._keeper = keeper
        self._heard = Unpacker()
        self._left: list[LeftRunning] = []
        self._course = Course()
        keeper.switchboard.add(line.fileno(), self._listen)

    def __repr__(self) -> str:
        return f"<GuardedTree {self.id}: pid {self.pid}, {self.stage.value}>"

    @property
    def id(self) -> str:
        """What its processes are marked with."""
        return text_of(self.mark)

    @property
    def stdin(self) -> trio.lowlevel.FdStream | None:
        """Where to write to it; None if it reads /dev/null."""
        return self._pipes[0]

    @property
    def stdout(self) -> trio.lowlevel.FdStream:
        """What it writes."""
        return _not_none(self._pipes[1])

    @property
    def stderr(self) -> trio.lowlevel.FdStream:
        """What it complains."""
        return _not_none(self._pipes[2])

    @property
    def is_ready(self) -> bool:
        """Whether there is a guard with nothing to guard yet, as far as we have heard."""
        self._listen()
        return self.stage is Stage.READY and not self.is_over

    @property
    def is_over(self) -> bool:
        """Whether nothing more is to come."""
        return self._course.is_over

    # What its owner wants.

    async def ask(self, request: bytes, pipes: Pipes) -> None:
        """Tell the guard what to start on which pipes, and wait until it has, or could not."""
        self.stage = Stage.ASKED
        self._pipes = [
            each if each is None else trio.lowlevel.FdStream(each) for each in pipes.near
        ]
        try:
            await self._send(request, pipes.theirs)
        finally:
            pipes.close_theirs()
        await self._course.until(
            lambda: self.stage in (Stage.STARTED, Stage.FAILED) or self.is_over
        )

    async def _send(self, request: bytes, descriptors: Sequence[int]) -> None:
        view = memoryview(request)
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", descriptors))]
        while view and self._line is not None:
            try:
                view = view[self._line.sendmsg([view], rights) :]
                rights.clear()  # they went with the first bytes
            except BlockingIOError:
                await trio.lowlevel.wait_writable(self._line)
            except ConnectionError:
                break  # it could not start it, or was killed: we shall hear

    async def wait_ready(self) -> bool:
        """Wait until there is a guard; False if there will be none."""
        await self._course.until(lambda: self.stage is not Stage.PLANNED or self.is_over)
        return self.stage is not Stage.PLANNED

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the program alone; nothing if it has ended."""
        self._listen()
        if self._line is None or self._course.exit is not None:
            return
        if number in _DEADLY:
            self._course.force(self._stdout_number())
        # Only a guard that somebody stopped lets so much pile up; there is `kill` for it.
        with contextlib.suppress(BlockingIOError, ConnectionError):
            self._line.send(pack(b"%d" % number))

    def kill(self) -> None:
        """Begin to kill the whole tree: the end of its line is what a guard kills for."""
        self._listen()
        if self._line is None or self.is_over:
            return
        self._is_killed = True
        self._course.force(self._stdout_number())
        with contextlib.suppress(OSError):
            self._line.shutdown(socket.SHUT_WR)

    def _stdout_number(self) -> int:
        return self.stdout.fileno() if self._pipes else -1

    async def wait_exit(self) -> LeaderExit:
        """Wait for the end of the program."""
        return await self._course.wait_exit()

    async def wait_empty(self) -> ExitFacts:
        """Wait until nothing of the tree is left but what cannot be reached."""
        return await self._course.wait_over()

    async def abandon(self) -> ExitFacts:
        """Give up waiting for the guard: have killed what is found, and say what is left."""
        if not self.is_over:
            self.kill()
            await self._keeper.clear(self)
        return self._course.facts()

    async def aclose(self) -> None:
        """Give up the pipes and the line, which kills what still lives."""
        self.close()
        await trio.lowlevel.checkpoint()

    def close(self) -> None:
        """Do so at once."""
        is_free = self.is_over and self.stage is Stage.STARTED and not self._is_killed
        if is_free and self._line is not None and self._keeper.take_back(self, self._line):
            self._line = None
        self._hang_up()
        for each in self._pipes:
            if each is not None:
                each.close()
        self._course.over(Emptied.UNPROVED)
        self._keeper.forget(self)

    # What happens.

    def swept(self, *, clean: bool, left: tuple[LeftRunning, ...]) -> None:
        """Note what a sweep has found instead of the guard."""
        self._course.over(Emptied.SWEPT if clean and not left else Emptied.UNPROVED, left)
        self._hang_up()

    def _hang_up(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            self._keeper.switchboard.remove(line.fileno())
            # A forked copy of us may hold it open: this ends it for all.
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
            line.close()

    def _listen(self) -> None:
        while self._line is not None:
            try:
                data = self._line.recv(1 << 16)
            except BlockingIOError:
                break
            except ConnectionError:
                data = b""
            for packet in self._heard.feed(data):
                self._note(packet)
            if not data:
                self._end_of_line()
        self._course.changed()

    def _end_of_line(self) -> None:
        self._hang_up()
        if self.is_over:
            return
        if self.stage in (Stage.PLANNED, Stage.READY, Stage.FAILED):
            self._course.over(Emptied.NO_CHILD)  # nothing was ever started
        else:
            self._keeper.lost(self)

    def _note(self, packet: list[bytes]) -> None:
        match packet:
            case [b"ready", pid, started]:
                self.guard = (int(pid), int(started))
                self.stage = Stage.READY
            case [b"started", pid, started]:
                self.pid = int(pid)
                self.started = int(started)
                self.stage = Stage.STARTED
            case [b"failed", what, path, number]:
                self.failure = failure_of(what, path, int(number))
                self.stage = Stage.FAILED
            case [b"exit", code, ours]:
                self._course.exited(int(code), ours=ours == b"1")
            case [b"left", pid, name, uid]:
                called = name.decode(errors="replace")
                self._left.append(LeftRunning(pid=int(pid), name=called, uid=int(uid)))
            case [b"empty"]:
                self._course.over(Emptied.NO_CHILD)
            case [b"refused"]:
                self._course.over(Emptied.UNPROVED, tuple(self._left))
            case [b"crashed", text]:
                self.crash = text.decode(errors="replace")
            case _:
                raise AssertionError(packet)


def _not_none(stream: trio.lowlevel.FdStream | None) -> trio.lowlevel.FdStream:
    assert stream is not None
    return stream
