"""Limit of open files, and whether it leaves room for one more child.

A child takes about four descriptors of this process. The usual soft limit of 1024 exists for
programs that use `select`; this package does not, so it raises the limit. A child must not inherit
the raised limit, because some programs walk through all possible descriptors: code that starts
children sets `LimitChange.before` again.
"""

from __future__ import annotations

import errno
import os
import resource
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Final

import msgspec

from sessionmgr.process.errors import DescriptorsExhausted

CAP: Final = 65_536
"""Highest soft limit that is set: room for about ten thousand children."""
RESERVE: Final = 32
"""Descriptors kept free for everything else: the store, the event loop, short-lived files."""
PER_CHILD: Final = 8
"""Descriptors that a start needs: both ends of three pipes, and two that watch the child."""

_MAC_CAP: Final = 10_240  # OPEN_MAX: macOS may refuse more, although it says "unlimited"
_LISTED: Final = "/proc/self/fd" if sys.platform == "linux" else "/dev/fd"


class LimitChange(msgspec.Struct, frozen=True):
    """Soft limit before and after a change."""

    before: int
    after: int


def raise_limit(cap: int = CAP) -> LimitChange:
    """Raise the soft limit of this process towards the hard one; never lower it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for wanted in (cap, _MAC_CAP):
        goal = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        if soft == resource.RLIM_INFINITY or goal <= soft:
            break
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (goal, hard))
            return LimitChange(soft, goal)
    return LimitChange(soft, soft)


class DescriptorBudget:
    """Budget of file descriptors, shared by all launchers of the process.

    It refuses a start before the system does, with an error that names the limit.
    """

    def __init__(self, *, reserve: int = RESERVE) -> None:
        self._reserve = reserve
        self._claimed = 0

    @property
    def has_reservations(self) -> bool:
        """Whether starts are in progress."""
        return self._claimed > 0

    def ensure_room(self, needed: int = PER_CHILD) -> None:
        """Return if `needed` more descriptors leave enough for everything else.

        Raises:
            DescriptorsExhausted: They do not. Nothing was changed.
        """
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if limit == resource.RLIM_INFINITY:
            return
        in_use = count_descriptors(limit) + self._claimed
        if in_use + needed + self._reserve > limit:
            raise DescriptorsExhausted(limit, in_use, needed, self._reserve)

    @contextmanager
    def reserve(self, needed: int = PER_CHILD) -> Generator[None]:
        """Reserve descriptors for a start in progress, so that concurrent starts count them.

        Raises:
            DescriptorsExhausted: Too few descriptors are left.
        """
        self.ensure_room(needed)
        self._claimed += needed
        try:
            yield
        finally:
            self._claimed -= needed


def count_descriptors(limit: int) -> int:
    """Return how many descriptors this process has open, or `limit` if it cannot open one more."""
    try:
        # Since Linux 6.2 the size of this directory is the number of descriptors; before, it is 0.
        size = os.stat(_LISTED).st_size if sys.platform == "linux" else 0  # noqa: PTH116
        # The listing itself has one descriptor open.
        return size or len(os.listdir(_LISTED)) - 1  # noqa: PTH208
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            return limit
        return 0  # unknown here: the system enforces its limit
