"""Which version a program is, and whether we can talk to it."""

from __future__ import annotations

import re
from typing import Final

from sessionmgr.adapter.kit.failures import config_invalid
from sessionmgr.model import Failure

_VERSION: Final = re.compile(r"(\d+)\.(\d+)\.(\d+)")


def numbers(version: str | None) -> tuple[int, ...] | None:
    """Return the numbers of a version, to be compared."""
    found = _VERSION.search(version or "")
    return None if found is None else tuple(map(int, found.groups()))


def outdated(program: str, version: str | None, oldest: tuple[int, ...]) -> Failure | None:
    """Return the failure that a version is which we cannot talk to."""
    found = numbers(version)
    if found is not None and found >= oldest:
        return None
    least = ".".join(map(str, oldest))
    return config_invalid(
        f"{program} {version or 'of no version'} is too old: {least} is the oldest"
    )
