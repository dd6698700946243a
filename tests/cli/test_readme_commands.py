"""What the README types prints what the README says, and its settings are settings."""

import json
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


SETTINGS = [block for block in blocks("toml") if "[[rule]]" not in block]


@pytest.mark.parametrize("block", SETTINGS, ids=range(len(SETTINGS)))
def test_the_settings_are_settings(block: str, tmp_path: Path) -> None:
    (tmp_path / "sessionmgr.toml").write_text(block, encoding="utf-8")
    trusted = sessionmgr("trust", str(tmp_path), cwd=tmp_path, env=environment(tmp_path))
    assert trusted.returncode == 0
    ran = sessionmgr("--print-config", cwd=tmp_path, env=environment(tmp_path))
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "sessionmgr.toml:1" in ran.stdout


def asking(command: str) -> str:
    """Return a prompt that makes the scripted agent ask to run a command."""
    return json.dumps([{"do": "ask", "tool": "Bash", "input": {"command": command}}])


def test_the_first_batch_runs_what_its_rules_allow_and_nothing_else(
    env: dict[str, str], tmp_path: Path
) -> None:
    jobs = [json.loads(line) for line in blocks("json")[0].splitlines()]
    (rules,) = (block for block in blocks("toml") if "[[rule]]" in block)
    (command,) = re.findall(r"^sessionmgr (batch jobs.jsonl .*)$", TEXT, re.MULTILINE)
    (tmp_path / "rules.toml").write_text(rules, encoding="utf-8")
    for each, asked in zip(jobs, ["npm test -- --watch=false", "rm -rf core"], strict=True):
        (tmp_path / each["cwd"]).mkdir()
        each["prompt"] = asking(asked)
        each.pop("model", None)  # the scripted agent has only one
    lines = "".join(json.dumps(each) + "\n" for each in jobs)
    (tmp_path / "jobs.jsonl").write_text(lines, encoding="utf-8")
    words = command.replace("-p claude", "-p scripted").split()
    ran = sessionmgr(*words, cwd=tmp_path, env=env)
    summary = json.loads((tmp_path / "runs/jobs/summary.json").read_bytes())
    denied = [(each["job"], each["summary"], each["by"]) for each in summary["denials"]]
    assert denied == [("parser", "rm -rf core", "rules")]
    assert "no approval rules" not in ran.stderr
    assert "! parser was denied Bash: rm -rf core (no rule allows it)" in ran.stderr.splitlines()
    failing = sessionmgr(*words, "--on-denied", "fail", "-o", "again", cwd=tmp_path, env=env)
    assert failing.returncode == 3
    assert "✗ parser failed: permission_refused: denied: Bash: rm -rf core" in failing.stderr
