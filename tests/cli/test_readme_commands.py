"""What the README types prints what the README says, and its settings are settings."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sessionmgr.cli.verbs import VERBS
from tests.cli.command import environment, sessionmgr

TEXT = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """Find the blocks in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def commands(block: str) -> list[tuple[str, str]]:
    """Find each command of a console block, and what it is said to print."""
    return re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)


def pattern(printed: str) -> str:
    """Return what fits: an ellipsis stands for anything in its line, or alone for any lines.

    However many blanks are two or more.
    """
    lines = [
        r"(?:.*\n)*" if line == "…" else f"{re.escape(line).replace('…', '.*')}\\n"
        for line in printed.splitlines()
    ]
    return re.sub(r"(?:\\ ){2,}", " +", "".join(lines))


@pytest.mark.parametrize("block", blocks("console"), ids=lambda block: block.split("\n")[0])
def test_what_is_typed_prints_what_is_said(block: str, tmp_path: Path) -> None:
    command = tmp_path / "bin" / "sessionmgr"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -X utf8 -m sessionmgr "$@"\n')
    command.chmod(0o755)
    env = environment(tmp_path, PATH=f"{command.parent}:{os.environ['PATH']}")
    typed = commands(block)
    assert typed
    for words, printed in typed:
        ran = subprocess.run(
            ["sh", "-c", words],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=240,
        )
        assert (ran.returncode, ran.stderr) == (0, "")
        assert re.fullmatch(pattern(printed), ran.stdout), ran.stdout


def test_there_are_some() -> None:
    assert len(blocks("console")) >= 1
    named = re.findall(r"sessionmgr ([a-z]+)\b", " ".join(blocks("console")))
    assert set(named) <= VERBS.keys()


@pytest.mark.parametrize("block", blocks("toml"), ids=range(len(blocks("toml"))))
def test_the_settings_are_settings(block: str, tmp_path: Path) -> None:
    (tmp_path / "sessionmgr.toml").write_text(block, encoding="utf-8")
    trusted = sessionmgr("trust", str(tmp_path), cwd=tmp_path, env=environment(tmp_path))
    assert trusted.returncode == 0
    ran = sessionmgr("--print-config", cwd=tmp_path, env=environment(tmp_path))
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "sessionmgr.toml:1" in ran.stdout
