"""Spawner: the process that forks reapers, and kills the tree of a reaper that was killed.

The strategy: a single thread and a small interpreter, so that a fork is safe and a reaper is cheap.
The spawner is a subreaper: the tree of a dead reaper becomes its children, and it kills every child
that is not a living reaper. When the owner dies, it waits for the reapers to end their trees, then
kills stuck reapers and their trees, and searches for tagged processes without a reaper.

Run by `spawner_main`: it imports little of the standard library and nothing else.
"""

from __future__ import annotations

import array
import contextlib
import gc
import os
import resource
import signal
import socket
import time

from sessionmgr.process import tree_tag
from sessionmgr.process.kill_tagged import TaggedProcessKiller
from sessionmgr.process.linux import subreaper
from sessionmgr.process.linux.kill_children import ChildKiller
from sessionmgr.process.linux.packet import pack
from sessionmgr.process.linux.reaper import run_reaper
from sessionmgr.process.linux.wakeup import Wakeup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

REAPERS_END_WITHIN: Final = 0.3
"""Seconds that reapers have to end their trees after the owner's death, before they are killed."""
SWEEP_FOR: Final = 5.0
_IGNORED: Final = (
    signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE,
    signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU,
)  # fmt: skip


def run_spawner(launcher: int, control: socket.socket, owner: int, open_files: int) -> None:
    """Serve a launcher until its owner is gone, then kill everything that it started.

    `owner` is a pidfd of the owner, `open_files` the soft limit that children get.
    """
    for each in _IGNORED:
        signal.signal(each, signal.SIG_IGN)
    subreaper.become_subreaper()
    tree_tag.set_tag(tree_tag.make_tag(launcher, 0))
    control.sendall(pack(b"ready"))
    # Our limit is the owner's, which may be raised, and some children walk through all possible
    # descriptors.
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (open_files, hard))
    gc.collect()
    gc.freeze()  # a collection would copy every page into every reaper
    gc.disable()
    _Spawner(launcher, control, owner).run()


class _Spawner:
    def __init__(self, launcher: int, control: socket.socket, owner: int) -> None:
        self._launcher = launcher
        self._control = control
        self._owner = owner
        self._wakeup = Wakeup(control.fileno(), owner)
        self._reapers: set[int] = set()
        self._killer = ChildKiller(self._reapers)
        self._empty_rounds = 2
        """Number of consecutive rounds without a kill, since a reaper was killed."""
        self._reaped = 0

    def run(self) -> None:
        while True:
            self._reap()
            if self._empty_rounds < 2:
                self._empty_rounds = (
                    0 if self._killer.kill_children(self._reaped) else self._empty_rounds + 1
                )
            ready = self._wakeup.wait(None if self._empty_rounds == 2 else 0.002)
            if self._owner in ready or (
                self._control.fileno() in ready and not self._handle_request()
            ):
                break
        self._kill_remaining()

    def _handle_request(self) -> bool:
        """Fork a reaper if one is requested; return False if the owner is gone."""
        try:
            data, ancillary, _, _ = self._control.recvmsg(
                64, socket.CMSG_SPACE(16), socket.MSG_CMSG_CLOEXEC
            )
        except ConnectionError:
            return False
        descriptors = array.array("i")
        for _, _, each in ancillary:
            descriptors.frombytes(each[: len(each) - len(each) % descriptors.itemsize])
        if data and descriptors:
            self._fork_reaper(descriptors[0])
        for descriptor in descriptors:
            os.close(descriptor)
        return bool(data)

    def _fork_reaper(self, line: int) -> None:
        try:
            pid = os.fork()
        except OSError as error:
            _send_failed(line, error)
            return
        if pid:
            self._reapers.add(pid)
            return
        code = 70
        try:
            self._wakeup.close()
            self._control.close()
            idle_tag = tree_tag.make_tag(self._launcher, 0)
            code = run_reaper(idle_tag, socket.socket(fileno=line), self._owner)
        except BaseException:  # noqa: ASYNC103, BLE001  # a process ends here, and says why
            import traceback  # large, and needed only here

            _send_crashed(line, traceback.format_exc())
        finally:
            os._exit(code)

    def _reap(self) -> bool:
        """Reap dead children and note reapers that failed; return True if no child is left."""
        self._reaped = 0
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if not pid:
                return False
            if pid in self._reapers:
                self._reapers.discard(pid)
                if status:
                    self._empty_rounds = 0
            else:
                self._reaped = pid

    def _kill_remaining(self) -> None:
        """Wait until the reapers have ended their trees, or kill both."""
        self._wakeup.unregister(self._control.fileno())
        self._wakeup.unregister(self._owner)
        self._control.close()
        deadline = time.monotonic() + REAPERS_END_WITHIN
        refused_since = 0.0
        while not self._reap():
            if time.monotonic() > deadline:
                self._reapers.clear()  # now they are killed like any other child
            killed = self._killer.kill_children(self._reaped)
            if self._reapers or killed or not self._killer.refused:
                refused_since = time.monotonic()
            elif time.monotonic() - refused_since > 0.2:
                break
            self._wakeup.wait(0.002 if killed else 0.02)
        TaggedProcessKiller(self._is_ours).run(SWEEP_FOR)

    def _is_ours(self, each: int) -> bool:
        return tree_tag.launcher_number(each) == self._launcher and tree_tag.tree_number(each) != 0


def _send_failed(descriptor: int, error: OSError) -> None:
    """Report to the owner that the reaper could not be made."""
    _send(descriptor, pack(b"failed", b"guard", b"", b"%d" % (error.errno or 0)))


def _send_crashed(descriptor: int, text: str) -> None:
    _send(descriptor, pack(b"crashed", text.replace("\0", "").encode(errors="replace")))


def _send(descriptor: int, packet: bytes) -> None:
    with contextlib.suppress(OSError):
        os.write(descriptor, packet)
