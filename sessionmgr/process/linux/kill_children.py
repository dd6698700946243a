"""Killing the children of a subreaper, generation by generation.

The strategy: a subreaper kills by number only its own children, because until it reaps them the
system cannot assign their numbers again. Orphans become its children, so each round reaches one
generation deeper. A process group dies at once however fast it forks; it is killed if its session
is not the subreaper's: such a group was created inside the tree, because no process can join a
session from outside.

A process that forks, creates a session and exits, again and again, is faster than a scan of /proc.
But its child usually has the next number after its own, and asking the kernel whether a number is
our child takes a microsecond.

Runs in the spawner: it imports little of the standard library and nothing else.
"""

from __future__ import annotations

import contextlib
import os
import signal

from sessionmgr.process import procfs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container
    from typing import Final

_NEAR: Final = 24
"""How many numbers after that of a dead child are tried for its own child."""


class ChildKiller:
    """Killer of this process's children, except those to be spared."""

    def __init__(self, spare: Container[int] = ()) -> None:
        self._spare = spare
        self._own_session = os.getsid(0)
        self.refused: set[int] = set()
        """Children that we may not kill: they run as another user."""

    def kill_children(self, reaped: int = 0) -> int:
        """Kill the present children and return their number; `reaped` is the last one that died."""
        killed = self._kill_near(reaped) if reaped else 0
        return killed or self._kill_all()

    def kill(self, child: int) -> bool:
        """Kill one child that was not yet reaped, and its group; return False if we may not."""
        try:
            os.kill(child, signal.SIGKILL)
        except PermissionError:
            self.refused.add(child)
            return False
        except ProcessLookupError:
            return False
        self._kill_group(child)
        return True

    def _kill_group(self, child: int) -> None:
        # The child is being killed, so it cannot change its group, and its number stays assigned. A
        # process from outside of our PID namespace has group 0, which as an argument would mean our
        # own group. The child may be dead already, and members may belong to another user.
        with contextlib.suppress(OSError):
            group = os.getpgid(child)
            if group > 1 and os.getsid(child) not in (0, self._own_session):
                os.killpg(group, signal.SIGKILL)

    def _kill_near(self, reaped: int) -> int:
        return sum(
            self.kill(pid)
            for pid in range(reaped + 1, reaped + _NEAR)
            if pid not in self._spare and pid not in self.refused and _is_live_child(pid)
        )

    def _kill_all(self) -> int:
        found = procfs.children(os.getpid())
        self.refused.clear()
        return sum(
            self.kill(pid) for pid in found if pid not in self._spare and _is_live_child(pid)
        )


def _is_live_child(pid: int) -> bool:
    try:
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return ended is None
