"""What an app-server has answered to `config/read`, for as long as no file has changed.

The answer costs a tenth of a short turn. The user may change the configuration between two turns,
so the files that it comes from are compared first: by name, size, inode and times. These are the
files of the machine, of the user, and of the directory and all that it is in; and whatever marks
the root of a project, because Codex looks for configurations up to there.
"""

from __future__ import annotations

import os
import stat
import time
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from sessionmgr_adapters.codex.configured import PROJECT, SYSTEM

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sessionmgr_adapters.codex.configured import Configured

DIRECTORIES: Final = 64
"""Directories for which the answer is remembered."""
RECENT: Final = 100_000_000
"""Nanoseconds for which a file may change once more without a new time stamp."""
MARKERS: Final = (".git",)
"""What marks the root of a project, unless the configuration names something else."""

FileState: TypeAlias = tuple[str, int, int, int, int]
"""Path, inode, size, and the times of the last change of content and of anything."""


class FilesState(msgspec.Struct, frozen=True):
    """The state of all files that configure Codex in a directory."""

    files: tuple[FileState, ...]
    is_recent: bool = False
    """Whether one of them has changed so recently that a further change might not show."""


class _Known(msgspec.Struct):
    configured: Configured
    files: FilesState


class ConfigCache:
    """The answers of one app-server, by directory."""

    def __init__(self) -> None:
        self._known: Final[OrderedDict[str, _Known]] = OrderedDict()
        self._markers: tuple[str, ...] = MARKERS

    def state(self, home: Path, cwd: str) -> FilesState:
        """Return the state of the files; to be taken before the app-server is asked."""
        return files_state(home, Path(cwd), self._markers)

    def get(self, cwd: str, files: FilesState) -> Configured | None:
        """Return what was answered, if no file has changed since."""
        known = self._known.get(cwd)
        return known.configured if known is not None and known.files == files else None

    def put(self, cwd: str, files: FilesState, configured: Configured) -> None:
        """Remember an answer to a question that was asked with the files in this state."""
        self._known.pop(cwd, None)
        markers = _markers_of(configured)
        if markers != self._markers:
            self._markers = markers  # the state was that of other files
        elif not files.is_recent:
            self._known[cwd] = _Known(configured, files)
        while len(self._known) > DIRECTORIES:
            self._known.popitem(last=False)


def files_state(home: Path, cwd: Path, markers: Sequence[str] = MARKERS) -> FilesState:
    """Return the state of all files that configure Codex in a directory."""
    places = dict.fromkeys((cwd, *cwd.parents))
    real = Path(os.path.realpath(cwd))
    places |= dict.fromkeys((real, *real.parents))
    configs = (home, SYSTEM, *(each / PROJECT for each in places))
    files = [state for each in configs for state in _configs_in(each)]
    files += [state for each in places for name in markers for state in _state(each / name)]
    now = time.time_ns()
    return FilesState(tuple(files), any(now - max(each[3:]) < RECENT for each in files))


def _configs_in(directory: Path) -> Iterator[FileState]:
    """Return the states of the configurations in a directory, and of what the cloud has said."""
    try:
        with os.scandir(directory) as entries:
            names = sorted(each.name for each in entries)
    except OSError:
        return  # there is none, or Codex cannot read it either
    for name in names:
        if name.endswith(".toml") or name.startswith("cloud-"):
            yield from _state(directory / name)


def _state(path: Path) -> Iterator[FileState]:
    try:
        found = path.stat()
    except OSError:
        return
    if stat.S_ISDIR(found.st_mode):
        yield (str(path), 0, 0, 0, 0)  # what changes in it makes no difference
    else:
        yield (str(path), found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _markers_of(configured: Configured) -> tuple[str, ...]:
    """Return what marks the root of a project by a configuration."""
    named = configured.project_root_markers
    return tuple(map(str, named)) if isinstance(named, list) else MARKERS
