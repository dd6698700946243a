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

from sessionmgr.process.exit_report import EmptyProof, LeftRunning
from sessionmgr.process.exit_state import ExitState
from sessionmgr.process.linux.packet import Unpacker, pack
from sessionmgr.process.spawn_errors import spawn_error
from sessionmgr.process.tree_tag import format_tag

if TYPE_CHECKING:
    import signal
    from collections.abc import Sequence

    from sessionmgr.process.errors import SpawnFailed
    from sessionmgr.process.exit_report import ExitReport, ProgramExit
    from sessionmgr.process.linux.socket_dispatcher import SocketDispatcher
    from sessionmgr.process.pipes import StandardPipes

_DEADLY: Final = (9, 15)


class StartStage(Enum):
    """How far the start of a tree has come."""

    PLANNED = "planned"
    READY = "ready"
    """It has a guard, which waits to hear what to start."""
    ASKED = "asked"
    STARTED = "started"
    FAILED = "failed"


class TreeOwner(Protocol):
    """Whoever looks after trees whose guards cannot."""

    @property
    def dispatcher(self) -> SocketDispatcher:
        """Where their lines come together."""
        ...

    def reaper_killed(self, tree: ReaperTree) -> None:
        """Take note that a guard was killed; `tree.swept` is to be called in the end."""
        ...

    async def kill_tree(self, tree: ReaperTree) -> None:
        """Kill what there is of a tree, its guard too, and call `tree.swept`."""
        ...

    def remove_tree(self, tree: ReaperTree) -> None:
        """Take note that the tree is given up."""
        ...

    def reuse_reaper(self, tree: ReaperTree, line: socket.socket) -> bool:
        """Keep the line to a guard that has no tree any more; False if it is not wanted."""
        ...


class ReaperTree:
    """A tree with a guard of its own, which proves its end. It fits `ChildTree`."""

    __slots__ = (
        "_exit_state",
        "_is_killed",
        "_left",
        "_line",
        "_owner",
        "_pipes",
        "_unpacker",
        "crash",
        "failure",
        "pid",
        "reaper",
        "spawner_pid",
        "stage",
        "started",
        "tag",
    )  # fmt: skip

    def __init__(self, mark: int, line: socket.socket, keeper: TreeOwner, warden: int) -> None:
        self.tag = mark
        self.spawner_pid = warden
        """The pid of the warden that made its guard."""
        self.pid = 0
        self.started = 0
        """When the program's process began, in ticks since the boot."""
        self.reaper = (0, 0)
        """The pid and the start of the guard."""
        self.stage = StartStage.PLANNED
        self.failure: SpawnFailed | None = None
        self.crash = ""
        """What a guard said that broke by itself, which none should."""
        self._pipes: list[trio.lowlevel.FdStream | None] = []
        self._line: socket.socket | None = line
        self._is_killed = False
        self._owner = keeper
        self._unpacker = Unpacker()
        self._left: list[LeftRunning] = []
        self._exit_state = ExitState()
        keeper.dispatcher.add(line.fileno(), self._read_line)

    def __repr__(self) -> str:
        return f"<GuardedTree {self.id}: pid {self.pid}, {self.stage.value}>"

    @property
    def id(self) -> str:
        """What its processes are marked with."""
        return format_tag(self.tag)

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
        self._read_line()
        return self.stage is StartStage.READY and not self.is_over

    @property
    def is_over(self) -> bool:
        """Whether nothing more is to come."""
        return self._exit_state.is_over

    # What its owner wants.

    async def start(self, request: bytes, pipes: StandardPipes) -> None:
        """Tell the guard what to start on which pipes, and wait until it has, or could not."""
        self.stage = StartStage.ASKED
        self._pipes = [
            each if each is None else trio.lowlevel.FdStream(each) for each in pipes.near
        ]
        try:
            await self._send(request, pipes.theirs)
        finally:
            pipes.close_child_ends()
        await self._exit_state.wait_until(
            lambda: self.stage in (StartStage.STARTED, StartStage.FAILED) or self.is_over
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
        await self._exit_state.wait_until(
            lambda: self.stage is not StartStage.PLANNED or self.is_over
        )
        return self.stage is not StartStage.PLANNED

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the program alone; nothing if it has ended."""
        self._read_line()
        if self._line is None or self._exit_state.exit is not None:
            return
        if number in _DEADLY:
            self._exit_state.set_forced(self._stdout_number())
        # Only a guard that somebody stopped lets so much pile up; there is `kill` for it.
        with contextlib.suppress(BlockingIOError, ConnectionError):
            self._line.send(pack(b"%d" % number))

    def kill(self) -> None:
        """Begin to kill the whole tree: the end of its line is what a guard kills for."""
        self._read_line()
        if self._line is None or self.is_over:
            return
        self._is_killed = True
        self._exit_state.set_forced(self._stdout_number())
        with contextlib.suppress(OSError):
            self._line.shutdown(socket.SHUT_WR)

    def _stdout_number(self) -> int:
        return self.stdout.fileno() if self._pipes else -1

    async def wait_exit(self) -> ProgramExit:
        """Wait for the end of the program."""
        return await self._exit_state.wait_exit()

    async def wait_empty(self) -> ExitReport:
        """Wait until nothing of the tree is left but what cannot be reached."""
        return await self._exit_state.wait_over()

    async def abandon(self) -> ExitReport:
        """Give up waiting for the guard: have killed what is found, and say what is left."""
        if not self.is_over:
            self.kill()
            await self._owner.kill_tree(self)
        return self._exit_state.report()

    async def aclose(self) -> None:
        """Give up the pipes and the line, which kills what still lives."""
        self.close()
        await trio.lowlevel.checkpoint()

    def close(self) -> None:
        """Do so at once."""
        is_free = self.is_over and self.stage is StartStage.STARTED and not self._is_killed
        if is_free and self._line is not None and self._owner.reuse_reaper(self, self._line):
            self._line = None
        self._close_line()
        for each in self._pipes:
            if each is not None:
                each.close()
        self._exit_state.set_over(EmptyProof.UNPROVED)
        self._owner.remove_tree(self)

    # What happens.

    def set_swept(self, *, clean: bool, left: tuple[LeftRunning, ...]) -> None:
        """Note what a sweep has found instead of the guard."""
        self._exit_state.set_over(
            EmptyProof.SWEPT if clean and not left else EmptyProof.UNPROVED, left
        )
        self._close_line()

    def _close_line(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            self._owner.dispatcher.remove(line.fileno())
            # A forked copy of us may hold it open: this ends it for all.
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
            line.close()

    def _read_line(self) -> None:
        while self._line is not None:
            try:
                data = self._line.recv(1 << 16)
            except BlockingIOError:
                break
            except ConnectionError:
                data = b""
            for packet in self._unpacker.feed(data):
                self._handle_packet(packet)
            if not data:
                self._end_of_line()
        self._exit_state.notify()

    def _end_of_line(self) -> None:
        self._close_line()
        if self.is_over:
            return
        if self.stage in (StartStage.PLANNED, StartStage.READY, StartStage.FAILED):
            self._exit_state.set_over(EmptyProof.NO_CHILD)  # nothing was ever started
        else:
            self._owner.reaper_killed(self)

    def _handle_packet(self, packet: list[bytes]) -> None:
        match packet:
            case [b"ready", pid, started]:
                self.reaper = (int(pid), int(started))
                self.stage = StartStage.READY
            case [b"started", pid, started]:
                self.pid = int(pid)
                self.started = int(started)
                self.stage = StartStage.STARTED
            case [b"failed", what, path, number]:
                self.failure = spawn_error(what, path, int(number))
                self.stage = StartStage.FAILED
            case [b"exit", code, ours]:
                self._exit_state.set_exited(int(code), ours=ours == b"1")
            case [b"left", pid, name, uid]:
                called = name.decode(errors="replace")
                self._left.append(LeftRunning(pid=int(pid), name=called, uid=int(uid)))
            case [b"empty"]:
                self._exit_state.set_over(EmptyProof.NO_CHILD)
            case [b"refused"]:
                self._exit_state.set_over(EmptyProof.UNPROVED, tuple(self._left))
            case [b"crashed", text]:
                self.crash = text.decode(errors="replace")
            case _:
                raise AssertionError(packet)


def _not_none(stream: trio.lowlevel.FdStream | None) -> trio.lowlevel.FdStream:
    assert stream is not None
    return stream
