"""What tests of the command line are handed."""

import os
from pathlib import Path

import pytest

from sessionmgr.cli import order, stored
from tests.cli.command import environment
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
    return Terminal(capfd, tmp_path)
