"""Fixtures for tests of the command line."""

import os
import sys
from pathlib import Path

import pytest

from sessionmgr.batch import batch, file_executor
from sessionmgr.cli import queries, send_request
from sessionmgr.cli.terminal import progress_display, store_wait
from tests.cli.command import environment
from tests.cli.command_terminal import CommandTerminal
from tests.cli.scripted_agent import install_scripted_agent


@pytest.fixture
def terminal(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> CommandTerminal:
    """A terminal in an empty directory, without settings and without a store."""
    for name in list(os.environ):
        if name.startswith("SESSIONMGR_"):
            monkeypatch.delenv(name)
    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    for module in (send_request, queries):  # this machine may be busy
        monkeypatch.setattr(module, "PATIENCE", 60.0)
    # The notes about waiting for the store would appear between the expected lines.
    monkeypatch.setattr(store_wait, "FIRST", 600.0)
    monkeypatch.setattr(progress_display, "FIRST_GAP", 600.0)
    monkeypatch.setattr(batch, "PATIENCE", 600.0)
    monkeypatch.setattr(file_executor, "NOTICED", 600.0)
    return CommandTerminal(capfd, tmp_path)


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """The environment of a command for which the scripted provider is installed."""
    path = install_scripted_agent(tmp_path / "agents")
    made = environment(tmp_path)
    made["PYTHONPATH"] = os.pathsep.join([path, made["PYTHONPATH"]])
    return made


@pytest.fixture
def prompt(terminal: CommandTerminal, monkeypatch: pytest.MonkeyPatch) -> CommandTerminal:
    """A terminal where the scripted provider is installed."""
    monkeypatch.setattr(sys, "path", [install_scripted_agent(terminal.home / "agents"), *sys.path])
    return terminal
