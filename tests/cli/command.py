"""The installed command, run in a child process."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

COMMAND = [sys.executable, "-X", "utf8", "-m", "sessionmgr"]


def environment(home: Path, **more: str) -> dict[str, str]:
    """Return our environment with another home and without settings of the command."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SESSIONMGR_")}
    places = {
        "HOME": str(home),
        "XDG_STATE_HOME": str(home / "state"),
        "XDG_CONFIG_HOME": str(home / "config"),
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "COLUMNS": "80",
    }
    return {**kept, **places, **more}


def run_command(
    *args: str,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: str | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    return subprocess.run(
        [*COMMAND, *args],
        cwd=cwd,
        env=env,
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=240,
    )
