"""Becoming the process that orphans below come up to.

Runs in the warden: the standard library, and little of it.
"""

from __future__ import annotations

import ctypes
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_PR_SET_CHILD_SUBREAPER: Final = 36
# Loaded once, in the warden: each guard would have its own copy.
_LIBRARY: Final = ctypes.CDLL(None, use_errno=True)


def become_subreaper() -> None:
    """Make this process a subreaper. A forked child is none until it says so itself.

    Raises:
        OSError: the system has no such thing.
    """
    if _LIBRARY.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
