"""Fingerprint of configuration files, which shows that one has changed, appeared or vanished.

While their state is equal, an adapter need not read the provider's configuration again. It takes
the state before it reads the configuration, so that a change in between is detected the next time.
"""

from __future__ import annotations

import os
import stat
import time
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

RECENT_NS: Final = 100_000_000
"""Nanoseconds in which a file may change again without a new time stamp."""

FileState: TypeAlias = tuple[str, int, int, int, int]
"""Path, inode, size, and the times of the last change of content and of anything."""


class FilesState(msgspec.Struct, frozen=True):
    """The state of some files."""

    files: tuple[FileState, ...]
    is_recent: bool
    """Whether one has changed so recently that the state might not show a further change."""


def files_state(states: Sequence[FileState]) -> FilesState:
    """Return the state of files as a whole."""
    now = time.time_ns()
    return FilesState(tuple(states), any(now - max(each[3:]) < RECENT_NS for each in states))


def directory_and_parents(directory: str) -> Iterator[str]:
    """Yield a directory and its parents; the root is ""."""
    yield directory
    while directory:
        directory = directory.rpartition("/")[0]
        yield directory


def directory_states(directory: str, is_wanted: Callable[[str], bool]) -> Sequence[FileState]:
    """Return the states of the files in a directory whose names are wanted."""
    try:
        with os.scandir(directory) as entries:
            names = sorted(each.name for each in entries if is_wanted(each.name))
    except OSError:
        return ()  # it does not exist, or the provider cannot read it either
    return [state for name in names for state in file_state(f"{directory}/{name}")]


def file_state(path: str) -> Sequence[FileState]:
    """Return the state of a file; of a directory, only that it exists."""
    try:
        found = os.stat(path)  # noqa: PTH116  # a third of the cost, and it is paid for each turn
    except OSError:
        return ()
    if stat.S_ISDIR(found.st_mode):
        return ((path, 0, 0, 0, 0),)
    return ((path, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns),)
