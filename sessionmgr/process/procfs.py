"""What Linux says about processes, in /proc.

Runs in the warden too: the standard library, and little of it.
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
    """Return the processes there are, the youngest first if numbers have not come round."""
    return sorted((int(each) for each in os.listdir("/proc") if each.isdigit()), reverse=True)


def newest_pid() -> int:
    """Return the number that was given out last; 0 if the system does not tell."""
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
    """One line of /proc/PID/stat, as far as it is of use."""

    __slots__ = ("name", "parent", "started", "state")

    def __init__(self, line: bytes) -> None:
        # The name may hold anything, blanks and parentheses too.
        begin, end = line.index(b"("), line.rindex(b")")
        self.name = line[begin + 1 : end].decode(errors="replace")
        rest = line[end + 2 :].split(None, _FIELDS_AFTER_NAME)
        self.state = rest[0]
        self.parent = int(rest[1])
        self.started = int(rest[19])


def read_stat(pid: int) -> ProcessStat | None:
    """Return what is known of a process, None if there is none."""
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
    """Return when a process began, in ticks since the boot: with its pid, its identity; or 0."""
    found = read_stat(pid)
    return found.started if found is not None else 0


def is_running(pid: int, started: int) -> bool | None:
    """Return whether the process that began then still runs; None if that is not visible.

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
    """Return the children of a process, some of them perhaps dead by now."""
    try:
        with open(f"/proc/{parent}/task/{parent}/children", "rb") as listed:
            return [int(each) for each in listed.read().split()]
    except OSError:
        pass  # a kernel that was built without that file
    found: list[int] = []
    for pid in pids():
        each = read_stat(pid)
        if each is not None and each.parent == parent:
            found.append(pid)
    return found


def descendants(roots: Iterable[int]) -> list[int]:
    """Return these processes and all that come of them, at one moment."""
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
    """Return the name of this boot of the machine; empty where there is none."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def pid_namespace() -> str:
    """Return the name of our PID namespace; empty if /proc does not show this very process.

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
        return pids  # a kernel that knows none
