"""Readiness: whether the program of a run is installed."""

import sys

from sessionmgr.adapter import Health
from sessionmgr.adapter.kit.readiness import program_health


def test_a_program_is_looked_for_on_the_path_of_the_run() -> None:
    assert program_health(sys.executable, {}) == Health()
    assert program_health("sh", {"PATH": "/bin:/usr/bin"}).state == "ok"
    missing = program_health("sh", {"PATH": "/nowhere"})
    assert (missing.state, missing.detail) == ("skip", "program 'sh' not found on PATH; install it")
