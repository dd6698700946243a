"""Where a path leads, whatever links are on the way: that is what would be read or changed."""

from __future__ import annotations

import os
from pathlib import PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def resolve_within(directories: Sequence[str], path: str) -> str:
    """Resolve a path, including links, within the one of `directories` that contains it.

    A relative path is resolved against the first of them, where the run works. An unresolvable
    path is returned as it is: a relative one without directories, one that begins with `~` (only
    the provider can expand it), and one that is not a valid file name.
    """
    if path.startswith("~") or "\0" in path or not (directories or PurePath(path).is_absolute()):
        return path
    real = PurePath(os.path.realpath(os.path.join(directories[0] if directories else "/", path)))  # noqa: PTH118
    for directory in directories:
        inside = PurePath(os.path.realpath(directory))
        if real.is_relative_to(inside):
            return str(PurePath(directory) / real.relative_to(inside))
    return str(real)
