"""The directory of a session, as it is stored."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path


def absolute(path: str | Path) -> str:
    """Return an absolute path; a relative one is seen from the working directory."""
    # Sessions share few directories, and a `Path` costs more than all else of opening one.
    return _joined("" if os.path.isabs(path) else os.getcwd(), os.fspath(path))  # noqa: PTH109, PTH117


@lru_cache(maxsize=256)
def _joined(base: str, path: str) -> str:
    return str(Path(base, path))
