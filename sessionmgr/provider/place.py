"""Where a path leads, whatever links are on the way: that is what would be read or changed."""

from __future__ import annotations

import os
from pathlib import PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def as_seen_from(directories: Sequence[str], path: str) -> str:
    """Return where a path leads, links and all: under the one of `directories` that it is in.

    A relative path is resolved against the first of them, which is where the run works. One that
    cannot be resolved is returned as it is: a relative one where there is no directory, one that
    begins with `~`, which only the provider can expand, and one that no file can have.
    """
    if path.startswith("~") or "\0" in path or not (directories or PurePath(path).is_absolute()):
        return path
    real = PurePath(os.path.realpath(os.path.join(directories[0] if directories else "/", path)))  # noqa: PTH118
    for directory in directories:
        inside = PurePath(os.path.realpath(directory))
        if real.is_relative_to(inside):
            return str(PurePath(directory) / real.relative_to(inside))
    return str(real)
