"""Programs that hold a portal, each run in a process of its own, with a home of its own."""

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from sessionmgr import RunResult, open_portal
from tests.process.owner_processes import is_alive

PROGRAMS = Path(__file__).with_name("programs")
XDG = ("CACHE", "CONFIG", "DATA", "STATE")
SHORTLY = 240.0
"""More seconds than any of them takes on a busy machine."""


def need(*packages: str) -> None:
    """Skip the test if packages that it needs are missing; in CI it fails then."""
    missing = [package for package in packages if find_spec(package) is None]
    if not missing:
        return
    reason = f"{', '.join(missing)} not installed: pip install -e '.[hosts]'"
    if os.environ.get("SESSIONMGR_HOSTS_REQUIRED", "") not in ("", "0"):
        pytest.fail(reason)
    pytest.skip(reason)


class Child:
    """A program, and the lines that it prints."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout is not None
        self._lines = process.stdout

    def line(self) -> str:
        """Return its next line; the end of its output is a failure of the test."""
        line = self._lines.readline()
        if not line:
            pytest.fail(f"it has ended: {self.process.wait(SHORTLY)}")
        return line.strip()

    def word(self, name: str) -> str:
        """Return the value of its next line, which is `NAME VALUE`."""
        said, _, value = self.line().partition(" ")
        assert said == name, (said, value)
        return value

    def end(self) -> int:
        """Wait for its end, and return its exit code."""
        return self.process.wait(SHORTLY)

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)


@contextmanager
def program(name: str, place: Path, *arguments: str) -> Generator[Child]:
    """Run a program until the block is left; its errors and warnings go to ours."""
    root = Path(__file__).parents[2]
    home = place / "home"
    home.mkdir(exist_ok=True)
    process = subprocess.Popen(
        [sys.executable, "-X", "utf8", str(PROGRAMS / f"{name}.py"), *arguments],
        cwd=place,
        env={
            **os.environ,
            "HOME": str(home),
            **{f"XDG_{kind}_HOME": str(home / kind.lower()) for kind in XDG},
            "IPYTHONDIR": str(home / "ipython"),
            "PYTHONUNBUFFERED": "1",
            "PYTHONPATH": os.pathsep.join([str(root), *filter(None, sys.path)]),
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )
    try:
        yield Child(process)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def require_gone(pid: int) -> None:
    """Make sure that a process has ended with the portal that ran it."""
    assert not is_alive(pid), f"process {pid} is left"


def stored_result(store: Path, run_id: str) -> RunResult:
    with open_portal(store=store) as portal:
        return portal.call(lambda manager: manager.result(run_id))
