"""Reaper: the process that owns one tree, and after that tree is empty possibly another one.

The strategy: the reaper is a subreaper, so an orphan of the tree becomes its child, whatever the
tree does with forks, sessions and namespaces. It reports events on its socket to the owner, relays
signals, and kills all its children when the socket or the owner ends. A tree is over when waitpid
finds no child any more (ECHILD): no process is left, and none can appear. A reaper that did not
have to kill is therefore as good as a new one, and can own the next tree.

Forked from the spawner: it imports little of the standard library and nothing else.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import signal
import socket
import time
from array import array

from sessionmgr.process import procfs, program, tree_tag
from sessionmgr.process.kill_tagged import TaggedProcessKiller
from sessionmgr.process.linux import subreaper
from sessionmgr.process.linux.kill_children import ChildKiller
from sessionmgr.process.linux.packet import Unpacker, pack
from sessionmgr.process.linux.wakeup import Wakeup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final

REFUSED_FOR: Final = 0.1
"""Seconds during which only processes that we may not kill are left, before they are reported."""
CHILD_ROUNDS: Final = 10
"""Number of rounds after which the tagged processes are killed too, wherever they are."""
MAX_LEFT_NAMED: Final = 64
"""Maximum number of remaining processes that are reported."""


def run_reaper(idle_tag: int, line: socket.socket, owner: int) -> int:
    """Own one tree after the other until the owner closes the socket; return the exit code.

    Args:
        idle_tag: The tag of the reaper itself while it has no tree.
        line: The socket to the owner.
        owner: A pidfd of the owner.
    """
    subreaper.become_subreaper()
    wakeup = Wakeup(line.fileno(), owner)
    unpacker = Unpacker()
    code: int | None = None
    with contextlib.suppress(ConnectionError):
        line.sendall(pack(b"ready", b"%d" % os.getpid(), b"%d" % procfs.start_time(os.getpid())))
        while code is None:
            request, stdio = _read_request(wakeup, line, owner, unpacker)
            if request is None:
                line.sendall(pack(b"empty"))
                return 0
            code = _Reaper(idle_tag, wakeup, line, owner, unpacker).run(request, stdio)
    return code or 0


def _read_request(
    wakeup: Wakeup, line: socket.socket, owner: int, unpacker: Unpacker
) -> tuple[list[bytes] | None, Sequence[int]]:
    """Read a request and its descriptors; return None if no request will follow."""
    stdio = array("i")
    while True:
        ready = wakeup.wait()
        if owner in ready:
            return None, ()
        if line.fileno() not in ready:
            continue
        data, ancillary, _, _ = line.recvmsg(
            1 << 16, socket.CMSG_SPACE(3 * stdio.itemsize), socket.MSG_CMSG_CLOEXEC
        )
        if not data:
            return None, ()
        for _, _, each in ancillary:
            stdio.frombytes(each)
        for packet in unpacker.feed(data):
            if len(packet) == 1:
                continue  # a signal for a program that had already ended
            if len(stdio) != 3:
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            return packet, stdio


def _ignored_signals() -> list[int]:
    return [each for each in signal.valid_signals() if signal.getsignal(each) == signal.SIG_IGN]


class _Reaper:
    def __init__(
        self, idle_tag: int, wakeup: Wakeup, line: socket.socket, owner: int, unpacker: Unpacker
    ) -> None:
        self._tree = 0
        self._idle_tag = idle_tag
        self._wakeup = wakeup
        self._line = line
        self._owner = owner
        self._leader = 0
        self._sent: set[int] = set()
        self._reaped = 0
        self._unpacker = unpacker

    def run(self, request: Sequence[bytes], stdio: Sequence[int]) -> int | None:
        """Start a tree and wait for its end; return the exit code, None if a tree may follow."""
        try:
            self._leader = self._start(request, stdio)
        except program.NotStartedError as error:
            self._send(b"failed", error.what, error.path, b"%d" % error.number)
            return 0
        for each in stdio:
            os.close(each)
        os.chdir("/")
        self._send(b"started", b"%d" % self._leader, b"%d" % procfs.start_time(self._leader))
        while True:
            if self._reap():
                self._send(b"empty")
                return None
            ready = self._wakeup.wait()
            if self._owner in ready or (
                self._line.fileno() in ready and not self._handle_signals()
            ):
                return self._kill_all()

    def _start(self, request: Sequence[bytes], stdio: Sequence[int]) -> int:
        tree, directory, count, *rest = request
        self._tree = int(tree)
        arguments = rest[: int(count)]
        environment: dict[bytes, bytes] = {}
        for entry in rest[int(count) :]:
            name, _, value = entry.partition(b"=")
            environment[name] = value
        program.change_directory(directory)
        limit = resource.getrlimit(tree_tag.RLIMIT_LOCKS)
        tree_tag.set_tag(self._tree)
        try:
            return program.start_program(arguments, environment, stdio, _ignored_signals())
        finally:
            resource.setrlimit(tree_tag.RLIMIT_LOCKS, limit)

    def _reap(self) -> bool:
        """Reap dead children and report the leader's end; return True if no child is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if not pid:
                return False
            self._reaped = pid
            if pid == self._leader:
                self._leader = 0
                code = os.waitstatus_to_exitcode(status)
                self._send(b"exit", b"%d" % code, b"%d" % (-code in self._sent))

    def _handle_signals(self) -> bool:
        """Relay the signals that the owner sent; return False if the socket has ended."""
        try:
            data = self._line.recv(4096)
        except ConnectionError:
            return False
        for packet in self._unpacker.feed(data):
            self._signal(int(packet[0]))
        return bool(data)

    def _signal(self, number: int) -> None:
        if not self._leader:
            return
        try:
            os.kill(self._leader, number)
        except PermissionError:
            return
        self._sent.add(number)

    def _kill_all(self) -> int:
        self._wakeup.unregister(self._line.fileno())
        self._wakeup.unregister(self._owner)
        killer = ChildKiller()
        tagged = TaggedProcessKiller(self._is_ours)
        self._sent.add(signal.SIGKILL)
        if self._leader:
            killer.kill(self._leader)  # usually the only process: no scan of /proc
        rounds = 0
        killed_at = time.monotonic()
        pause = 0.001
        while not self._reap():
            if killer.kill_children(self._reaped):
                killed_at = time.monotonic()
                pause = 0.001
            elif killer.refused and time.monotonic() - killed_at > REFUSED_FOR:
                return self._report_left(killer.refused)
            rounds += 1
            if rounds % CHILD_ROUNDS == 0:
                tagged.kill_newest()
                tagged.scan()
            self._reaped = 0
            self._wakeup.wait(pause)
            pause = min(pause * 2, 0.05)
        self._send(b"empty")
        return 0

    def _is_ours(self, tag: int) -> bool:
        return tag == self._tree

    def _report_left(self, refused: set[int]) -> int:
        for pid in procfs.descendants(refused)[:MAX_LEFT_NAMED]:
            found = procfs.read_stat(pid)
            if found is not None and found.state not in (b"Z", b"X"):
                name = found.name.replace("\0", "").encode()
                self._send(b"left", b"%d" % pid, name, b"%d" % procfs.owner_uid(pid))
        self._send(b"refused")
        return 1

    def _send(self, *fields: bytes) -> None:
        # The owner may be gone: then the main loop kills the tree, and a lost report is no error.
        with contextlib.suppress(OSError):
            self._line.sendall(pack(*fields))
