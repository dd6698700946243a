"""Killing by mark: what has no living guard any more, wherever it is.

The strategy: a pidfd is opened first and the mark read after, so that a number which passed
to another process in between is never hit: the signal goes through the pidfd. One look through
/proc may miss a process that was born meanwhile, so it takes two clean ones in a row; a look in
which something vanished before its mark was read proves less, and it takes more of those.

Runs in the warden too: the standard library, and little of it.
"""

from __future__ import annotations

import os
import select
import signal
import time

from sessionmgr.process import mark, proc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

_CLEAN: Final = 6
"""How much proof it takes: a still look counts 3, one with something vanished 1."""


class Swept:
    """What a sweep found: the killed, by number and name, and those it may not kill."""

    def __init__(self) -> None:
        self.killed: dict[int, str] = {}
        self.refused: dict[int, str] = {}
        self.alive = 0
        """How many were not yet dead at the last look."""
        self.clean = False
        """Whether nothing was left but the refused."""


def sweep(
    wanted: Callable[[int], bool], seconds: float, pause: Callable[[float], None] = time.sleep
) -> Swept:
    """Kill all with a mark that is wanted, again and again until there is none or time is up."""
    swept = Swept()
    end = time.monotonic() + seconds
    proof = 0
    while proof < _CLEAN:
        still = _look(wanted, swept)
        proof = 0 if swept.alive else proof + (3 if still else 1)
        if time.monotonic() > end:
            return swept
        if swept.alive:
            pause(0.001)
    swept.clean = True
    return swept


def strike(wanted: Callable[[int], bool]) -> int:
    """Kill all with a mark that is wanted, once; return how many were alive."""
    swept = Swept()
    _look(wanted, swept)
    return swept.alive


def _look(wanted: Callable[[int], bool], swept: Swept) -> bool:
    """Go through all processes once; False if some vanished before their marks were read."""
    swept.alive = 0
    swept.refused.clear()
    still = True
    own = os.getpid()
    for pid in proc.pids():
        if pid == own:
            continue
        if any(map(wanted, mark.marks_of(pid))):
            _kill(pid, wanted, swept)
        elif not os.path.exists(f"/proc/{pid}"):
            still = False
    return still


def _kill(pid: int, wanted: Callable[[int], bool], swept: Swept) -> None:
    try:
        held = os.pidfd_open(pid)
    except OSError:
        return
    found = proc.stat(pid)
    try:
        if found is None or not any(map(wanted, mark.marks_of(pid))):
            return  # the number has passed to somebody else
        if _is_dead(held):
            return  # a zombie keeps its mark until it is reaped
        signal.pidfd_send_signal(held, signal.SIGKILL)
        swept.alive += 1
        swept.killed[pid] = found.name
    except PermissionError:
        swept.refused[pid] = found.name if found is not None else ""
    except ProcessLookupError:
        pass
    finally:
        os.close(held)


def _is_dead(held: int) -> bool:
    poll = select.poll()
    poll.register(held, select.POLLIN)
    return bool(poll.poll(0))
