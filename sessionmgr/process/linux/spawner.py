"""The warden: the process that makes guards, and stands in for one that is killed.

The strategy: a single thread and a small interpreter, so that it can fork safely and a guard
is cheap. It is a subreaper: the tree of a dead guard comes up to it, and it kills whatever is
its child and no living guard. Should the owner die it sees that the guards end their trees,
ends those of the stuck ones, and looks for marked processes which no guard has any more.

Run by `standalone`: the standard library, and little of it.
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
"""How many seconds guards have to end their trees after the owner's death, until we do it."""
SWEEP_FOR: Final = 5.0
_IGNORED: Final = (
    signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE,
    signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU,
)  # fmt: skip


def run_spawner(launcher: int, control: socket.socket, owner: int, open_files: int) -> None:
    """Be the warden of a launcher until its owner is gone and everything with it.

    `owner` is a pidfd, `open_files` the soft limit that children are to have.
    """
    for each in _IGNORED:
        signal.signal(each, signal.SIG_IGN)
    subreaper.become_subreaper()
    tree_tag.set_tag(tree_tag.make_tag(launcher, 0))
    control.sendall(pack(b"ready"))
    # Our own is the owner's, which may be raised; children would walk through all there could be.
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (open_files, hard))
    gc.collect()
    gc.freeze()  # a collection would copy every page into every guard
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
        """How many looks in a row found nothing to kill, since a guard was killed."""
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
        """Make a guard, if one is wanted; False if the owner is gone."""
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
            at_rest = tree_tag.make_tag(self._launcher, 0)
            code = run_reaper(at_rest, socket.socket(fileno=line), self._owner)
        except BaseException:  # noqa: ASYNC103, BLE001  # a process ends here, and says why
            import traceback  # it is large, and of use only here

            _send_crashed(line, traceback.format_exc())
        finally:
            os._exit(code)

    def _reap(self) -> bool:
        """Bury the dead, note which guards left something; True if no child is left."""
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
        """See everything dead: the guards do it, or we."""
        self._wakeup.unregister(self._control.fileno())
        self._wakeup.unregister(self._owner)
        self._control.close()
        patience = time.monotonic() + REAPERS_END_WITHIN
        refused_since = 0.0
        while not self._reap():
            if time.monotonic() > patience:
                self._reapers.clear()  # they are our children: killed like any other
            struck = self._killer.kill_children(self._reaped)
            if self._reapers or struck or not self._killer.refused:
                refused_since = time.monotonic()
            elif time.monotonic() - refused_since > 0.2:
                break
            self._wakeup.wait(0.002 if struck else 0.02)
        TaggedProcessKiller(self._is_ours).run(SWEEP_FOR)

    def _is_ours(self, each: int) -> bool:
        return tree_tag.launcher_number(each) == self._launcher and tree_tag.tree_number(each) != 0


def _send_failed(descriptor: int, error: OSError) -> None:
    """Tell the owner that there is no guard."""
    _send(descriptor, pack(b"failed", b"guard", b"", b"%d" % (error.errno or 0)))


def _send_crashed(descriptor: int, text: str) -> None:
    _send(descriptor, pack(b"crashed", text.replace("\0", "").encode(errors="replace")))


def _send(descriptor: int, packet: bytes) -> None:
    with contextlib.suppress(OSError):
        os.write(descriptor, packet)
