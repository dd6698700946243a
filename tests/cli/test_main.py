"""The command line starts fast, and reports an error in one line."""

import importlib.metadata
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import NoReturn

import pytest

from sessionmgr.cli import main as command_line
from sessionmgr.cli.verb_table import VERBS
from sessionmgr.cli.verbs import demo
from tests.cli.command_terminal import CommandTerminal


def test_version_is_that_of_the_distribution(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["--version"]) == 0
    assert capsys.readouterr().out == f"sessionmgr {importlib.metadata.version('sessionmgr')}\n"


def test_help_names_the_commands_and_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["--help"]) == 0
    out = capsys.readouterr().out
    assert "demo" in out
    assert "130" in out


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_a_verb_is_enough_and_fits(terminal: CommandTerminal, verb: str) -> None:
    code, out, err = terminal.bare(verb, "--help")
    assert (code, err) == (0, "")
    assert out.startswith(f"usage: sessionmgr {verb}")
    assert "--print-config" in out
    assert max(map(len, out.splitlines())) <= 80
    assert terminal.bare("--json", verb, "-h")[1] == out


@pytest.mark.parametrize(
    "argv", [["nonsense"], ["--vers"], ["demo", "--nonsense"], ["demo", "x"], ["schema", "x"]]
)
def test_wrong_usage_is_exit_code_1_and_says_what_is_wrong(
    argv: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line.main(argv) == 1
    said = capsys.readouterr()
    assert said.err.startswith("sessionmgr: error: ")
    assert said.err.count("\n") == 1
    assert argv[-1] in said.err
    assert said.out == ""


def test_no_command_is_wrong_usage_and_prints_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main([]) == 1
    said = capsys.readouterr()
    assert "demo" in said.err
    assert said.out == ""


def test_an_interrupt_before_the_verb_is_ready_is_exit_code_130(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(args: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "run", interrupted)
    assert command_line.main(["demo"]) == 130


def test_neither_version_nor_help_nor_a_mistake_imports_what_only_some_verbs_need() -> None:
    program = """
import sys
from sessionmgr.cli.main import main
for argv in ["--version"], ["--help"], ["nonsense"]:
    main(argv)
heavy = {"msgspec", "sqlite3", "tomllib"} & sys.modules.keys()
sys.exit(f"imported: {heavy}" if heavy else 0)
"""
    # Coverage imports modules of its own in each child.
    env = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    words = [sys.executable, "-c", program]
    subprocess.run(words, check=True, capture_output=True, timeout=60, env=env)
