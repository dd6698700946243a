"""The console blocks of the pages print what the pages say, and the first batch works."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sessionmgr.cli.verb_table import VERBS
from tests.cli.command import environment, run_command
from tests.pages import Block, blocks, text_of

CONSOLE = blocks("console")


def commands(block: Block) -> list[tuple[str, str]]:
    """Return each command of a console block, with the output that the page shows."""
    return re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block.text, re.MULTILINE)


def pattern(printed: str) -> str:
    """Return a pattern: an ellipsis is anything in its line, or any lines if it stands alone.

    Two or more blanks match any number of blanks.
    """
    lines = [
        r"(?:.*\n)*" if line == "…" else f"{re.escape(line).replace('…', '.*')}\\n"
        for line in printed.splitlines()
    ]
    return re.sub(r"(?:\\ ){2,}", " +", "".join(lines))


@pytest.mark.parametrize("block", CONSOLE, ids=lambda block: block.name)
def test_a_command_of_a_page_prints_what_the_page_says(block: Block, tmp_path: Path) -> None:
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


def test_there_are_console_blocks_with_commands_that_exist() -> None:
    typed = " ".join(block.text for block in CONSOLE)
    assert set(re.findall(r"sessionmgr ([a-z]+)\b", typed)) <= VERBS.keys()
    assert len(CONSOLE) >= 1


def asking(command: str) -> str:
    """Return a prompt that makes the scripted agent ask to run a command."""
    return json.dumps([{"do": "ask", "tool": "Bash", "input": {"command": command}}])


def test_the_first_batch_runs_what_its_rules_allow_and_nothing_else(
    env: dict[str, str], tmp_path: Path
) -> None:
    (jobs,) = (block.text for block in blocks("json") if block.page == "README.md")
    (rules,) = (
        block.text
        for block in blocks("toml")
        if block.page == "README.md" and "[[rule]]" in block.text
    )
    (command,) = re.findall(r"^sessionmgr (batch .*)$", text_of("README.md"), re.MULTILINE)
    (tmp_path / "rules.toml").write_text(rules, encoding="utf-8")
    lines: list[str] = []
    for line, asked in zip(
        jobs.splitlines(), ["npm test -- --watch=false", "rm -rf core"], strict=True
    ):
        job = json.loads(line)
        (tmp_path / job["cwd"]).mkdir()
        job["prompt"] = asking(asked)
        job.pop("model", None)  # the scripted agent has only one
        lines.append(json.dumps(job) + "\n")
    (tmp_path / "jobs.jsonl").write_text("".join(lines), encoding="utf-8")
    words = command.replace("-p claude", "-p scripted").split()
    ran = run_command(*words, cwd=tmp_path, env=env)
    summary = json.loads((tmp_path / "runs/jobs/summary.json").read_bytes())
    denied = [(each["job"], each["summary"], each["by"]) for each in summary["denials"]]
    assert denied == [("parser", "rm -rf core", "rules")]
    assert "no approval rules" not in ran.stderr
    assert "! parser was denied Bash: rm -rf core (no rule allows it)" in ran.stderr.splitlines()
    failing = run_command(*words, "--on-denied", "fail", "-o", "again", cwd=tmp_path, env=env)
    assert failing.returncode == 3
    assert "✗ parser failed: permission_refused: denied: Bash: rm -rf core" in failing.stderr
