"""What tests of the command line are handed."""

import os
import sys
from pathlib import Path

import pytest

from sessionmgr.batch import batch, file_executor
from sessionmgr.cli import order, scoreboard, store_wait, stored
from tests.cli.command import environment
from tests.cli.scripted_agent import installed_in
from tests.cli.terminal import Terminal


@pytest.fixture
def terminal(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Terminal:
    """A terminal in an empty directory, with nothing set and no store yet."""
    for name in list(os.environ):
        if name.startswith("SESSIONMGR_"):
            monkeypatch.delenv(name)
    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    for module in (order, stored):  # this machine may do much else
        monkeypatch.setattr(module, "PATIENCE", 60.0)
    # Nor does a command tell here that it takes long: that would stand between its own lines.
    monkeypatch.setattr(store_wait, "FIRST", 600.0)
    monkeypatch.setattr(scoreboard, "FIRST_GAP", 600.0)
    monkeypatch.setattr(batch, "PATIENCE", 600.0)
    monkeypatch.setattr(file_executor, "NOTICED", 600.0)
    return Terminal(capfd, tmp_path)


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """The environment of a command for which the scripted provider is installed."""
    path = installed_in(tmp_path / "agents")
    made = environment(tmp_path)
    made["PYTHONPATH"] = os.pathsep.join([path, made["PYTHONPATH"]])
    return made


@pytest.fixture
def prompt(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal where the scripted provider is installed."""
    monkeypatch.setattr(sys, "path", [installed_in(terminal.home / "agents"), *sys.path])
    return terminal
