"""Killing the processes of one living tree that have a certain environment variable.

Some agents start the tools of several conversations from one process, and set a variable that names
the conversation. As everywhere, a pidfd is opened before the process is examined, so that a signal
never reaches another process that has got the same number.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Final

import trio

from sessionmgr.process import procfs, tree_tag

ROUNDS: Final = 8
"""Maximum number of searches: a process that dies may have started children meanwhile."""
PAUSE: Final = 0.01
"""Seconds between two searches, if the only candidates have no environment yet."""


async def kill_processes_with_env(tree: str, name: str, value: str) -> int:
    """Kill the processes of a tree that have a variable of this value; return their number."""
    return await trio.to_thread.run_sync(_kill_all, tree, f"{name}={value}".encode())


def _kill_all(tree: str, entry: bytes) -> int:
    killed: set[int] = set()
    for _ in range(ROUNDS):
        # Parents first: a shell whose child is killed would start its next command.
        eldest_first = reversed(procfs.pids())
        looked = {
            pid: _kill_if_matching(pid, tree, entry) for pid in eldest_first if pid not in killed
        }
        found = {pid for pid, killed_it in looked.items() if killed_it}
        if not found:
            if None not in looked.values():
                break
            time.sleep(PAUSE)
        killed |= found
    return len(killed)


def _kill_if_matching(pid: int, tree: str, entry: bytes) -> bool | None:
    """Kill the process if it has the variable; return whether it has, None if unknown yet."""
    try:
        held = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        carries = _has_value(pid, entry)
        if carries is False or tree not in map(tree_tag.format_tag, tree_tag.process_tags(pid)):
            return False
        if carries is None:
            return None if procfs.is_running(pid, procfs.start_time(pid)) else False
        signal.pidfd_send_signal(held, signal.SIGKILL)
    except (PermissionError, ProcessLookupError):
        return False
    finally:
        os.close(held)
    return True


def _has_value(pid: int, entry: bytes) -> bool | None:
    """Return whether the process has the variable; None if it has no environment.

    A process that is executing a new program has none for a moment.
    """
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    return entry in environment.split(b"\0") if environment else None
