"""Process data of Linux, read from /proc.

Also runs in the spawner: it imports little of the standard library and nothing else.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Final

_ENDED: Final = (b"Z", b"X", b"x")
"""The states of a process that has ended: a zombie, or one that is being removed."""
_FIELDS_AFTER_NAME: Final = 20
"""The start time is the 22nd field of stat; the first two are pid and name."""


def pids() -> list[int]:
    """Return all process ids, the youngest first unless the numbers have wrapped."""
    return sorted((int(each) for each in os.listdir("/proc") if each.isdigit()), reverse=True)


def newest_pid() -> int:
    """Return the process id that was assigned last; 0 if the system does not report it."""
    try:
        file = os.open("/proc/loadavg", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        return int(os.read(file, 256).split()[4])
    except (OSError, ValueError, IndexError):
        return 0
    finally:
        os.close(file)


class ProcessStat:
    """Fields of one line of /proc/PID/stat."""

    __slots__ = ("name", "parent", "started", "state")

    def __init__(self, line: bytes) -> None:
        # The name may contain any characters, also blanks and parentheses.
        begin, end = line.index(b"("), line.rindex(b")")
        self.name = line[begin + 1 : end].decode(errors="replace")
        rest = line[end + 2 :].split(None, _FIELDS_AFTER_NAME)
        self.state = rest[0]
        self.parent = int(rest[1])
        self.started = int(rest[19])


def read_stat(pid: int) -> ProcessStat | None:
    """Return the stat line of a process, None if it does not exist."""
    try:
        file = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return ProcessStat(os.read(file, 4096))
    except (OSError, ValueError, IndexError):
        return None
    finally:
        os.close(file)


def start_time(pid: int) -> int:
    """Return the start time of a process in ticks since the boot, or 0.

    With its pid it identifies the process.
    """
    found = read_stat(pid)
    return found.started if found is not None else 0


def is_running(pid: int, started: int) -> bool | None:
    """Return whether the process that started then still runs; None if that is not visible.

    A zombie has ended and only waits for its parent to reap it. A process that is not shown may
    belong to another user, if /proc is mounted with hidepid. A start of 0 could not be read.
    """
    found = read_stat(pid)
    if found is not None and not started:
        return None
    if found is not None:
        return found.started == started and found.state not in _ENDED
    if pid <= 0:
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return None
    return None


def children(parent: int) -> list[int]:
    """Return the children of a process; some of them may have ended."""
    try:
        with open(f"/proc/{parent}/task/{parent}/children", "rb") as listed:
            return [int(each) for each in listed.read().split()]
    except OSError:
        pass  # the kernel was built without that file
    found: list[int] = []
    for pid in pids():
        each = read_stat(pid)
        if each is not None and each.parent == parent:
            found.append(pid)
    return found


def descendants(roots: Iterable[int]) -> list[int]:
    """Return these processes and their descendants, at one moment."""
    offspring: dict[int, list[int]] = {}
    for pid in pids():
        found = read_stat(pid)
        if found is not None:
            offspring.setdefault(found.parent, []).append(pid)
    family = list(roots)
    for pid in family:
        family.extend(offspring.get(pid, ()))
    return family


def owner_uid(pid: int) -> int:
    """Return the uid that a process runs as; -1 if it is gone."""
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return -1


def boot_id() -> str:
    """Return the id of the machine's current boot; empty if the system has none."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def pid_namespace() -> str:
    """Return the id of our PID namespace; empty if /proc does not show this process.

    Without a /proc of its own, a namespace shows the numbers of another one. The start time of a
    process depends on the reader, too: a time namespace has its own clock.
    """
    try:
        if os.readlink("/proc/self") != str(os.getpid()):
            return ""
        pids = os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""
    try:
        return f"{pids} {os.readlink('/proc/self/ns/time')}"
    except OSError:
        return pids  # the kernel supports none
