"""Killing by tag: processes that no living reaper owns, wherever they are.

The strategy: a pidfd is opened before the tag is read, and the signal goes through the pidfd. So a
signal never reaches another process that has got the same number in between.

A process that forks and exits, again and again, is gone before a scan of /proc reaches it. So
between two scans the newest process number is read and that process is killed at once, which takes
less time than a fork. A scan during which the system assigned no number has missed no process: that
is the proof. On a machine where other programs fork all the time there is no such scan; then the
processes born during the scan are examined too, and several such rounds without a find replace the
proof.

A launcher inside a tree gives its own trees other tags. A process that it has started may carry
only such a tag, and has no spawner any more if that was killed. So all trees of such a launcher
are killed as soon as one of its processes is seen that carries both tags.

A process whose child is killed would continue: a shell starts its next command. So ancestors are
killed before their descendants.

Also runs in the spawner: it imports little of the standard library and nothing else.
"""

from __future__ import annotations

import os
import select
import signal
import time

from sessionmgr.process import procfs, tree_tag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

_QUIET: Final = 3
"""Number of rounds without a find that replace a proof."""
_LEAST: Final = 50
"""Minimum number of scans, even after the time limit: the machine may have been suspended."""
_CHASE_STEPS: Final = 60
"""Number of steps of a chase, which kills the newest processes between two scans."""
_BORN: Final = 512
"""Maximum number of processes born during a scan that are examined after it."""
_NEWEST: Final = 8
"""Number of newest process numbers that each step of a chase examines."""
_GENERATIONS: Final = 32
"""Maximum number of ancestors of a process that are examined."""


class TaggedProcessKiller:
    """Killer of all processes with a tag that `wanted` accepts; it records which it killed."""

    def __init__(self, wanted: Callable[[int], bool]) -> None:
        self._wanted = wanted
        self._inside: set[int] = set()
        """Launchers inside the trees."""
        self._own = os.getpid()
        self._around = {tree_tag.launcher_number(each) for each in tree_tag.process_tags(self._own)}
        """Launchers around this process: their tags are wanted only if `wanted` accepts them."""
        self.killed: dict[int, str] = {}
        """Killed processes: number and name."""
        self.refused: dict[int, str] = {}
        """Processes that we may not kill."""
        self._signalled: dict[int, str] = {}
        self.clean = False
        """Whether nothing was left in the end but the refused processes."""

    def run(self, seconds: float) -> TaggedProcessKiller:
        """Kill until no process is found or the time is up."""
        end = time.monotonic() + seconds
        looks = quiet = 0
        self.kill_newest()
        while quiet < _QUIET:
            newest = procfs.newest_pid()
            found = self.scan()
            looks += 1
            if not found and newest and newest == procfs.newest_pid():
                break
            found += self.kill_newer_than(newest) + self.kill_newest()
            quiet = 0 if found else quiet + 1
            if looks >= _LEAST and time.monotonic() > end:
                return self
        self.clean = True
        return self

    @property
    def left(self) -> dict[int, str]:
        """Remaining processes: those that we may not kill, and those that did not die in time."""
        return self.refused if self.clean else {**self.refused, **self._signalled}

    def scan(self) -> int:
        """Scan all processes once and kill the wanted ones; return their number."""
        self.refused.clear()
        self._signalled.clear()
        return sum(self._kill_tagged(pid, tree_tag.process_tags) for pid in procfs.pids())

    def kill_newer_than(self, since: int) -> int:
        """Kill the wanted processes with numbers assigned after this one; return their number."""
        newest = procfs.newest_pid()
        born = range(newest, max(since, newest - _BORN), -1)
        return sum(self._kill_tagged(pid, tree_tag.process_tags) for pid in born)

    def kill_newest(self) -> int:
        """Kill the newest wanted processes for a moment; return their number."""
        found = 0
        seen = 0
        for _ in range(_CHASE_STEPS):
            newest = procfs.newest_pid()
            for pid in range(newest, max(seen, newest - _NEWEST), -1):
                found += self._kill_tagged(pid, tree_tag.tag_from_limit)
            seen = newest
        return found

    def _kill_tagged(self, pid: int, tags_of: Callable[[int], list[int]]) -> bool:
        """Kill a wanted living process, its ancestors first; return whether it was one."""
        if pid == self._own:
            return False
        try:
            held = os.pidfd_open(pid)
        except OSError:
            return False
        try:
            if not self._is_ours(pid, held, tags_of):
                return False
            for ancestor in reversed(self._ancestors(pid, tags_of)):
                self._kill(ancestor, tags_of)
            return self._send(pid, held)
        finally:
            os.close(held)

    def _ancestors(self, pid: int, tags_of: Callable[[int], list[int]]) -> list[int]:
        """Return its ancestors up to the first that is not wanted, the nearest first."""
        found: list[int] = []
        while len(found) < _GENERATIONS:
            known = procfs.read_stat(found[-1] if found else pid)
            if known is None or known.parent == self._own:
                break
            if not self._has_wanted(tags_of(known.parent)):
                break
            found.append(known.parent)
        return found

    def _kill(self, pid: int, tags_of: Callable[[int], list[int]]) -> None:
        try:
            held = os.pidfd_open(pid)
        except OSError:
            return
        try:
            if self._is_ours(pid, held, tags_of):
                self._send(pid, held)
        finally:
            os.close(held)

    def _is_ours(self, pid: int, held: int, tags_of: Callable[[int], list[int]]) -> bool:
        # A zombie has its tag until it is reaped; there may be thousands where init is slow.
        return not _is_dead(held) and self._has_wanted(tags_of(pid))

    def _has_wanted(self, tags: list[int]) -> bool:
        if not any(map(self._is_wanted, tags)):
            return False
        self._inside |= tree_tag.nested_launchers(tags, self._is_wanted) - self._around
        return True

    def _is_wanted(self, each: int) -> bool:
        return self._wanted(each) or tree_tag.launcher_number(each) in self._inside

    def _send(self, pid: int, held: int) -> bool:
        try:
            signal.pidfd_send_signal(held, signal.SIGKILL)
        except PermissionError:
            self.refused[pid] = _process_name(pid)
            return False
        except ProcessLookupError:
            return False
        self._signalled[pid] = self.killed.setdefault(pid, _process_name(pid))
        return True


def _is_dead(held: int) -> bool:
    poll = select.poll()
    poll.register(held, select.POLLIN)
    return bool(poll.poll(0))


def _process_name(pid: int) -> str:
    found = procfs.read_stat(pid)
    return found.name if found is not None else ""
