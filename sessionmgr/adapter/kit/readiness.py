"""Check for an adapter's `readiness`: whether its program is installed."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from sessionmgr.adapter import Health

if TYPE_CHECKING:
    from collections.abc import Mapping


def program_health(program: str, env: Mapping[str, str]) -> Health:
    """Return whether a program is a file, or on the PATH of the run's environment."""
    if shutil.which(program, path=env.get("PATH", "")) is None:
        where = "" if "/" in program else " on PATH"
        return Health(state="skip", detail=f"program {program!r} not found{where}; install it")
    return Health()
