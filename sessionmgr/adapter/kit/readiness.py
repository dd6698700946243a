"""Whether the program of an adapter is there, for its `readiness`."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from sessionmgr.adapter import Health

if TYPE_CHECKING:
    from collections.abc import Mapping


def program_health(program: str, env: Mapping[str, str]) -> Health:
    """Return whether a program is a file, or on the PATH of the run's environment."""
    if shutil.which(program, path=env.get("PATH", "")) is None:
        return Health(state="skip", detail=f"there is no program {program!r}; install it")
    return Health()
