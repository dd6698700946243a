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
    places = dict.fromkeys((*_upwards(str(cwd)), *_upwards(os.path.realpath(cwd))))
    files = [*_configs_in(str(home)), *_configs_in(str(SYSTEM))]
    for each in places:
        files += _configs_in(f"{each}/{PROJECT}")
        for name in markers:
            files += _state(f"{each}/{name}")
    now = time.time_ns()
    return FilesState(tuple(files), any(now - max(each[3:]) < RECENT for each in files))


def _upwards(directory: str) -> Iterator[str]:
    """Return a directory, and all that it is in."""
    yield directory
    while directory:
        directory = directory.rpartition("/")[0]
        yield directory


def _configs_in(directory: str) -> Sequence[FileState]:
    """Return the states of the configurations in a directory, and of what the cloud has said."""
    try:
        with os.scandir(directory) as entries:
            names = [each.name for each in entries]
    except OSError:
        return ()  # there is none, or Codex cannot read it either
    found = [each for each in names if each.endswith(".toml") or each.startswith("cloud-")]
    return [state for name in sorted(found) for state in _state(f"{directory}/{name}")]


def _state(path: str) -> Sequence[FileState]:
    try:
        found = os.stat(path)  # noqa: PTH116  # a third of the cost, and it is paid for each turn
    except OSError:
        return ()
    if stat.S_ISDIR(found.st_mode):
        return ((path, 0, 0, 0, 0),)  # what changes in it makes no difference
    return ((path, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns),)


def _markers_of(configured: Configured) -> tuple[str, ...]:
    """Return what marks the root of a project by a configuration."""
    named = configured.project_root_markers
    return tuple(map(str, named)) if isinstance(named, list) else MARKERS
