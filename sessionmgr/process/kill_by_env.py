"""Killing what carries a word in its environment, of one living tree and nobody else's.

Some agents start what they start for several conversations from one process. What one of these
leaves behind can be told by a variable that the agent puts there. As everywhere, a pidfd is opened
first and the process looked at after, so that a number which passed to another is never hit.
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
"""How often it is looked again, because what dies may have had children meanwhile."""
PAUSE: Final = 0.01
"""Seconds until the next look, if only such are left as show no environment yet."""


async def kill_processes_with_env(tree: str, name: str, value: str) -> int:
    """Kill what a tree of this id has with a variable of this value; return how many they were."""
    return await trio.to_thread.run_sync(_kill_all, tree, f"{name}={value}".encode())


def _kill_all(tree: str, word: bytes) -> int:
    killed: set[int] = set()
    for _ in range(ROUNDS):
        # Parents first: a shell that waits for a process that is killed begins its next command.
        eldest_first = reversed(procfs.pids())
        looked = {
            pid: _kill_if_matching(pid, tree, word) for pid in eldest_first if pid not in killed
        }
        found = {pid for pid, struck in looked.items() if struck}
        if not found:
            if None not in looked.values():
                break
            time.sleep(PAUSE)
        killed |= found
    return len(killed)


def _kill_if_matching(pid: int, tree: str, word: bytes) -> bool | None:
    """Kill it if it carries the word, and return whether it did; None if that is not seen yet."""
    try:
        held = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        carries = _has_value(pid, word)
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


def _has_value(pid: int, word: bytes) -> bool | None:
    """Return whether it carries the word; None if it has no environment.

    For a moment none has one that begins another program.
    """
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    return word in environment.split(b"\0") if environment else None
