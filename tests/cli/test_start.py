"""Interrupts during the start of the command."""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest

from sessionmgr.cli.start import start

MAIN = "sessionmgr.cli.main"


class Interrupting(MetaPathFinder):
    """A finder that raises KeyboardInterrupt when the command line is imported."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == MAIN:
            raise KeyboardInterrupt
        return None


def test_ctrl_c_during_the_imports_is_an_exit_code_and_no_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, MAIN, raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupting(), *sys.meta_path])
    assert start() == 130


def test_else_it_is_the_command_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["sessionmgr", "--version"])
    assert start() == 0
    assert capsys.readouterr().out.startswith("sessionmgr ")
