"""Subreaper: the process that adopts the orphans among its descendants.

Runs in the spawner: it imports little of the standard library and nothing else.
"""

from __future__ import annotations

import ctypes
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_PR_SET_CHILD_SUBREAPER: Final = 36
# Loaded once, in the spawner: otherwise each reaper would have its own copy.
_LIBRARY: Final = ctypes.CDLL(None, use_errno=True)


def become_subreaper() -> None:
    """Make this process a subreaper. A forked child does not inherit it.

    Raises:
        OSError: The system does not support it.
    """
    if _LIBRARY.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
