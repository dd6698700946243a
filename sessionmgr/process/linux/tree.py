"""Child tree on the owner's side: three pipes, and the socket to the reaper.

The strategy: a tree needs no task and no timer. The dispatcher reads the socket and records the
reaper's reports here; waiting tasks are parked until there is one. The end of the socket without
the report that the tree is empty means that the reaper was killed; then the owner searches for
the tree's processes.
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
    """Stage of a tree's start."""

    PLANNED = "planned"
    READY = "ready"
    """A reaper exists and waits for a request."""
    ASKED = "asked"
    STARTED = "started"
    FAILED = "failed"


class TreeOwner(Protocol):
    """Owner of trees, which acts when a reaper cannot."""

    @property
    def dispatcher(self) -> SocketDispatcher:
        """Dispatcher of the sockets to all reapers."""
        ...

    def reaper_killed(self, tree: ReaperTree) -> None:
        """Begin to kill a tree whose reaper was killed, and call `tree.set_swept` afterwards."""
        ...

    async def kill_tree(self, tree: ReaperTree) -> None:
        """Kill the reaper of a tree and all that is found of it, and call `tree.set_swept`."""
        ...

    def remove_tree(self, tree: ReaperTree) -> None:
        """Forget a closed tree."""
        ...

    def reuse_reaper(self, tree: ReaperTree, line: socket.socket) -> bool:
        """Keep the socket to a reaper without a tree; return False if it is not needed."""
        ...


class ReaperTree:
    """Tree with a reaper, which proves the tree's end. It fits `ChildTree`."""

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

    def __init__(self, tag: int, line: socket.socket, owner: TreeOwner, spawner: int) -> None:
        self.tag = tag
        self.spawner_pid = spawner
        """Process id of the spawner that forked its reaper."""
        self.pid = 0
        self.started = 0
        """Start time of the program's process, in ticks since the boot."""
        self.reaper = (0, 0)
        """Process id and start time of the reaper."""
        self.stage = StartStage.PLANNED
        self.failure: SpawnFailed | None = None
        self.crash = ""
        """Traceback of a reaper that crashed, which is a bug."""
        self._pipes: list[trio.lowlevel.FdStream | None] = []
        self._line: socket.socket | None = line
        self._is_killed = False
        self._owner = owner
        self._unpacker = Unpacker()
        self._left: list[LeftRunning] = []
        self._exit_state = ExitState()
        owner.dispatcher.add(line.fileno(), self._read_line)

    def __repr__(self) -> str:
        return f"<ReaperTree {self.id}: pid {self.pid}, {self.stage.value}>"

    @property
    def id(self) -> str:
        """Id of the tree, which its processes carry as their tag."""
        return format_tag(self.tag)

    @property
    def stdin(self) -> trio.lowlevel.FdStream | None:
        """Stream to its stdin; None if its stdin is /dev/null."""
        return self._pipes[0]

    @property
    def stdout(self) -> trio.lowlevel.FdStream:
        """Stream from its stdout."""
        return _not_none(self._pipes[1])

    @property
    def stderr(self) -> trio.lowlevel.FdStream:
        """Stream from its stderr."""
        return _not_none(self._pipes[2])

    @property
    def is_ready(self) -> bool:
        """Whether it has a reaper and no program yet, as far as is known."""
        self._read_line()
        return self.stage is StartStage.READY and not self.is_over

    @property
    def is_over(self) -> bool:
        """Whether the tree is known to be over."""
        return self._exit_state.is_over

    # --- called by the owner -------------------------------------------------------------------

    async def start(self, request: bytes, pipes: StandardPipes) -> None:
        """Send the request and the pipes to the reaper, and wait for its start or failure."""
        self.stage = StartStage.ASKED
        self._pipes = [
            each if each is None else trio.lowlevel.FdStream(each) for each in pipes.near
        ]
        try:
            await self._send(request, pipes.far)
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
                rights.clear()  # the descriptors were sent with the first bytes
            except BlockingIOError:
                await trio.lowlevel.wait_writable(self._line)
            except ConnectionError:
                break  # the reaper failed: its report or the end follows

    async def wait_ready(self) -> bool:
        """Wait until the reaper is ready; return False if it will never be."""
        await self._exit_state.wait_until(
            lambda: self.stage is not StartStage.PLANNED or self.is_over
        )
        return self.stage is not StartStage.PLANNED

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the program alone; do nothing if it has ended."""
        self._read_line()
        if self._line is None or self._exit_state.exit is not None:
            return
        if number in _DEADLY:
            self._exit_state.set_forced(self._stdout_number())
        # The buffer is full only if the reaper was stopped by a signal; `kill` works even then.
        with contextlib.suppress(BlockingIOError, ConnectionError):
            self._line.send(pack(b"%d" % number))

    def kill(self) -> None:
        """Begin to kill the whole tree: its reaper does that at the end of the socket."""
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
        """Wait until the tree is empty, except for processes that cannot be killed."""
        return await self._exit_state.wait_over()

    async def abandon(self) -> ExitReport:
        """Stop waiting for the reaper: kill what a search finds, and report what is left."""
        if not self.is_over:
            self.kill()
            await self._owner.kill_tree(self)
        return self._exit_state.report()

    async def aclose(self) -> None:
        """Close the pipes and the socket, which kills what still lives."""
        self.close()
        await trio.lowlevel.checkpoint()

    def close(self) -> None:
        """Do the same at once; keep the reaper for another tree if it killed nothing."""
        is_free = self.is_over and self.stage is StartStage.STARTED and not self._is_killed
        if is_free and self._line is not None and self._owner.reuse_reaper(self, self._line):
            self._line = None
        self._close_line()
        for each in self._pipes:
            if each is not None:
                each.close()
        self._exit_state.set_over(EmptyProof.UNPROVED)
        self._owner.remove_tree(self)

    # --- called for the reaper -----------------------------------------------------------------

    def set_swept(self, *, clean: bool, left: tuple[LeftRunning, ...]) -> None:
        """Record the result of a search that replaces the reaper's report."""
        self._exit_state.set_over(
            EmptyProof.SWEPT if clean and not left else EmptyProof.UNPROVED, left
        )
        self._close_line()

    def _close_line(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            self._owner.dispatcher.remove(line.fileno())
            # A forked copy of this process may hold the socket open; `shutdown` ends it there too.
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
            self._exit_state.set_over(EmptyProof.NO_CHILD)  # no program was started
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
