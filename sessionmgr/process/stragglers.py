"""Killing what carries a word in its environment, of one living tree and nobody else's.

Some agents start what they start for several conversations from one process. What one of these
leaves behind can be told by a variable that the agent puts there. As everywhere, a pidfd is opened
first and the process looked at after, so that a number which passed to another is never hit.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Final

import trio

from sessionmgr.process import mark, proc

ROUNDS: Final = 8
"""How often it is looked again, because what dies may have had children meanwhile."""


async def kill_stragglers(tree: str, name: str, value: str) -> int:
    """Kill what a tree of this id has with a variable of this value; return how many they were."""
    return await trio.to_thread.run_sync(_kill_all, tree, f"{name}={value}".encode())


def _kill_all(tree: str, word: bytes) -> int:
    killed: set[int] = set()
    for _ in range(ROUNDS):
        # Parents first: a shell that waits for a process that is killed begins its next command.
        eldest_first = reversed(proc.pids())
        found = {pid for pid in eldest_first if pid not in killed and _strike(pid, tree, word)}
        if not found:
            break
        killed |= found
    return len(killed)


def _strike(pid: int, tree: str, word: bytes) -> bool:
    try:
        held = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if not _carries(pid, word) or tree not in map(mark.text_of, mark.marks_of(pid)):
            return False
        signal.pidfd_send_signal(held, signal.SIGKILL)
    except (PermissionError, ProcessLookupError):
        return False
    finally:
        os.close(held)
    return True


def _carries(pid: int, word: bytes) -> bool:
    try:
        return word in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False
