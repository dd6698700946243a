"""What an app-server has answered to `config/read`, for as long as no file has changed.

The answer costs a tenth of a short turn, and the user may change the configuration between two
turns. It comes from the files of the machine, of the user, and of the directory and all that it is
in; and from whatever marks the root of a project, because Codex looks for files up to there.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from sessionmgr.adapter.kit.file_state import files_state, state_of, states_in, upwards
from sessionmgr_adapters.codex.configured import PROJECT, SYSTEM

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sessionmgr.adapter.kit.file_state import FilesState
    from sessionmgr_adapters.codex.configured import Configured

DIRECTORIES: Final = 64
"""Directories for which the answer is remembered."""
MARKERS: Final = (".git",)
"""What marks the root of a project, unless the configuration names something else."""


class ConfigCache:
    """The answers of one app-server, by directory."""

    def __init__(self) -> None:
        self._known: Final[OrderedDict[str, tuple[FilesState, Configured]]] = OrderedDict()
        self._markers: tuple[str, ...] = MARKERS

    def state(self, home: Path, cwd: str) -> FilesState:
        """Return the state of the files; to be taken before the app-server is asked."""
        return config_state(str(home), cwd, self._markers)

    def get(self, cwd: str, files: FilesState) -> Configured | None:
        """Return what was answered, if no file has changed since."""
        before, configured = self._known.get(cwd, (None, None))
        return configured if before == files else None

    def put(self, cwd: str, files: FilesState, configured: Configured) -> None:
        """Remember an answer to a question that was asked with the files in this state."""
        self._known.pop(cwd, None)
        named = configured.project_root_markers
        markers = tuple(map(str, named)) if isinstance(named, list) else MARKERS
        if markers != self._markers:
            self._markers = markers  # the state was that of other files
        elif not files.is_recent:
            self._known[cwd] = (files, configured)
        while len(self._known) > DIRECTORIES:
            self._known.popitem(last=False)


def config_state(home: str, cwd: str, markers: Sequence[str] = MARKERS) -> FilesState:
    """Return the state of all files that configure Codex in a directory."""
    files = [*states_in(home, _is_config), *states_in(str(SYSTEM), _is_config)]
    for each in dict.fromkeys((*upwards(cwd), *upwards(os.path.realpath(cwd)))):
        files += states_in(f"{each}/{PROJECT}", _is_config)
        for name in markers:
            files += state_of(f"{each}/{name}")
    return files_state(files)


def _is_config(name: str) -> bool:
    """Whether a file is a configuration, or keeps what the cloud has said."""
    return name.endswith(".toml") or name.startswith("cloud-")
