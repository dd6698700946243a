"""Killing by mark: what has no living guard any more, wherever it is.

The strategy: a pidfd is opened first and the mark read after, so that a number which passed
to another process in between is never hit: the signal goes through the pidfd.

What forks and leaves, again and again, is gone before a look through /proc comes to it. So
between looks the newest number is asked for and struck at once: that takes less than a fork.
And a look during which no number was given out has missed nobody: that is the proof. Where
others never stop forking it cannot be had; then whoever was born meanwhile is looked at too,
and several rounds of all that without a find stand in.

A launcher inside a tree marks its own trees anew. What it has started may carry no mark but
that, and has no warden any more once that was killed: so all trees of such a launcher are
wanted as soon as one is seen of its processes that carries both marks.

What waits for a process that is killed would go on: a shell begins its next command. So of a
family the ancestors are killed first.

Runs in the warden too: the standard library, and little of it.
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
"""How many looks and chases without a find stand in for a proof."""
_LEAST: Final = 50
"""So many looks there are, though time be up: a machine that stands still uses it for nothing."""
_CHASE: Final = 60
_BORN: Final = 512
_NEWEST: Final = 8
"""How many of the newest numbers are tried at each step of a chase."""
_GENERATIONS: Final = 32
"""How many ancestors of a process are looked for."""


class TaggedProcessKiller:
    """Kills all processes with a mark that is wanted, and remembers which."""

    def __init__(self, wanted: Callable[[int], bool]) -> None:
        self._asked = wanted
        self._inside: set[int] = set()
        """The launchers inside the trees."""
        self._own = os.getpid()
        self._around = {tree_tag.launcher_number(each) for each in tree_tag.process_tags(self._own)}
        """Those around this process: they are wanted only if they are asked for."""
        self.killed: dict[int, str] = {}
        """The killed, by number and name."""
        self.refused: dict[int, str] = {}
        """Those that we may not kill."""
        self._struck: dict[int, str] = {}
        self.clean = False
        """Whether nothing was left in the end but the refused."""

    def run(self, seconds: float) -> TaggedProcessKiller:
        """Kill again and again, until there is nothing to kill or time is up."""
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
        """What is left: those that we may not kill, and those that would not die in time."""
        return self.refused if self.clean else {**self.refused, **self._struck}

    def scan(self) -> int:
        """Go through all processes once; return how many were ours."""
        self.refused.clear()
        self._struck.clear()
        return sum(self._kill_tagged(pid, tree_tag.process_tags) for pid in procfs.pids())

    def kill_newer_than(self, since: int) -> int:
        """Strike at those that were born after this number was given out."""
        newest = procfs.newest_pid()
        born = range(newest, max(since, newest - _BORN), -1)
        return sum(self._kill_tagged(pid, tree_tag.process_tags) for pid in born)

    def kill_newest(self) -> int:
        """Strike at the newest processes for a moment; return how many were ours."""
        found = 0
        seen = 0
        for _ in range(_CHASE):
            newest = procfs.newest_pid()
            for pid in range(newest, max(seen, newest - _NEWEST), -1):
                found += self._kill_tagged(pid, tree_tag.tag_from_limit)
            seen = newest
        return found

    def _kill_tagged(self, pid: int, marks_of: Callable[[int], list[int]]) -> bool:
        """Kill a process if it is ours and lives, its ancestors first; return whether it was."""
        if pid == self._own:
            return False
        try:
            held = os.pidfd_open(pid)
        except OSError:
            return False
        try:
            if not self._is_ours(pid, held, marks_of):
                return False
            for ancestor in reversed(self._ancestors(pid, marks_of)):
                self._kill(ancestor, marks_of)
            return self._send(pid, held)
        finally:
            os.close(held)

    def _ancestors(self, pid: int, marks_of: Callable[[int], list[int]]) -> list[int]:
        """Return those of its ancestors that are ours without a gap, the nearest first."""
        found: list[int] = []
        while len(found) < _GENERATIONS:
            known = procfs.read_stat(found[-1] if found else pid)
            if known is None or known.parent == self._own:
                break
            if not self._has_wanted(marks_of(known.parent)):
                break
            found.append(known.parent)
        return found

    def _kill(self, pid: int, marks_of: Callable[[int], list[int]]) -> None:
        try:
            held = os.pidfd_open(pid)
        except OSError:
            return
        try:
            if self._is_ours(pid, held, marks_of):
                self._send(pid, held)
        finally:
            os.close(held)

    def _is_ours(self, pid: int, held: int, marks_of: Callable[[int], list[int]]) -> bool:
        # A zombie has its mark until it is reaped; there may be thousands, where init is slow.
        return not _is_dead(held) and self._has_wanted(marks_of(pid))

    def _has_wanted(self, marks: list[int]) -> bool:
        if not any(map(self._is_wanted, marks)):
            return False
        self._inside |= tree_tag.nested_launchers(marks, self._is_wanted) - self._around
        return True

    def _is_wanted(self, each: int) -> bool:
        return self._asked(each) or tree_tag.launcher_number(each) in self._inside

    def _send(self, pid: int, held: int) -> bool:
        try:
            signal.pidfd_send_signal(held, signal.SIGKILL)
        except PermissionError:
            self.refused[pid] = _process_name(pid)
            return False
        except ProcessLookupError:
            return False
        self._struck[pid] = self.killed.setdefault(pid, _process_name(pid))
        return True


def _is_dead(held: int) -> bool:
    poll = select.poll()
    poll.register(held, select.POLLIN)
    return bool(poll.poll(0))


def _process_name(pid: int) -> str:
    found = procfs.read_stat(pid)
    return found.name if found is not None else ""
