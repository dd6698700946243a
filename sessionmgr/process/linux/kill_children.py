"""How a subreaper kills what it has.

The strategy: it kills by pid only its own children: until it reaps them, their numbers are
nobody else's. Orphans come up to it, so each round reaches one generation deeper, and a
process group, which dies at one stroke however fast it forks, is killed if its session is not
the hunter's: then it was made inside the tree, for nobody joins a session from outside.

A process that forks, sets up a session of its own and exits, again and again, is faster than
a look through /proc. But its child is mostly the next number after its own, and asking the
kernel whether a number is our child takes a microsecond.

Runs in the warden: the standard library, and little of it.
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
    """Kills the children of this process, but not those to be spared, in rounds."""

    def __init__(self, spare: Container[int] = ()) -> None:
        self._spare = spare
        self._own_session = os.getsid(0)
        self.refused: set[int] = set()
        """Children that we may not kill: they run as somebody else."""

    def kill_children(self, reaped: int = 0) -> int:
        """Kill the children of now and return how many; `reaped` is the last one that died."""
        struck = self._kill_near(reaped) if reaped else 0
        return struck or self._kill_all()

    def kill(self, child: int) -> bool:
        """Kill one child, which was not yet reaped, and its group; False if we may not."""
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
        # It is being killed, so it changes its group no more, and its number stays taken. What
        # came in from outside of our PID namespace has group 0, which would mean our own.
        # It may be dead already, and some of the group may be somebody else's.
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
