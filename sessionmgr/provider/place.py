"""Where a path leads, whatever links are on the way: that is what would be read or changed."""

from __future__ import annotations

import os
from pathlib import PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def as_seen_from(directories: Sequence[str], path: str) -> str:
    """Return where a path leads, links and all: under the one of `directories` that it is in."""
    real = PurePath(os.path.realpath(path))
    for directory in directories:
        inside = PurePath(os.path.realpath(directory))
        if real.is_relative_to(inside):
            return str(PurePath(directory) / real.relative_to(inside))
    return str(real)
