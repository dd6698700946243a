"""How many files we may have open, and whether that leaves room for one more child.

A child takes some four descriptors of ours, and the usual soft limit of 1024 is an old courtesy
to `select`, which we do not use; so it is raised as far as is sensible. Children should not get
the raised one: some programs walk through all descriptors there could be. Whoever starts them
sets `Raised.before` again.
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
"""As far as the limit is raised: room for some ten thousand children."""
RESERVE: Final = 32
"""Kept free for everything else: the store, the loop, files that are opened for a moment."""
PER_CHILD: Final = 8
"""What a child takes while it is started: both ends of three pipes, and two to watch it."""

_MAC_CAP: Final = 10_240  # OPEN_MAX: macOS may refuse more, although it says "unlimited"
_LISTED: Final = "/proc/self/fd" if sys.platform == "linux" else "/dev/fd"


class LimitChange(msgspec.Struct, frozen=True):
    """A soft limit before and after."""

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
    """Says no before the system does, and by name. One for all who start children."""

    def __init__(self, *, reserve: int = RESERVE) -> None:
        self._reserve = reserve
        self._claimed = 0

    @property
    def has_reservations(self) -> bool:
        """Whether starts are under way."""
        return self._claimed > 0

    def ensure_room(self, needed: int = PER_CHILD) -> None:
        """Return if `needed` more descriptors leave enough for everything else.

        Raises:
            DescriptorsExhausted: they do not. Nothing was changed.
        """
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if limit == resource.RLIM_INFINITY:
            return
        in_use = count_descriptors(limit) + self._claimed
        if in_use + needed + self._reserve > limit:
            raise DescriptorsExhausted(limit, in_use, needed, self._reserve)

    @contextmanager
    def reserve(self, needed: int = PER_CHILD) -> Generator[None]:
        """Hold room for a start that is under way, so that others at the same time count it.

        Raises:
            DescriptorsExhausted: there is no such room.
        """
        self.ensure_room(needed)
        self._claimed += needed
        try:
            yield
        finally:
            self._claimed -= needed


def count_descriptors(limit: int) -> int:
    """Return how many descriptors this process has open, or `limit` if not one more can be."""
    try:
        # Linux tells without being asked to list them, since 6.2; before, it says 0.
        size = os.stat(_LISTED).st_size if sys.platform == "linux" else 0  # noqa: PTH116
        # A listing has one of its own open.
        return size or len(os.listdir(_LISTED)) - 1  # noqa: PTH208
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            return limit
        return 0  # nothing here tells: the system will
