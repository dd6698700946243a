"""The README's first batch on real agents: allowed commands run, others are shown as denied."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import trio

from sessionmgr.model import Json
from sessionmgr.testing.model_server import (
    ModelCall,
    ModelSay,
    ModelScript,
    ModelServer,
    ModelUse,
    open_model_server,
    prompt_with,
)
from sessionmgr.testing.model_server.isolated_env import IsolatedEnvironment
from tests.cli.command import COMMAND, environment
from tests.real.agent_programs import CLAUDE, CODEX, program_of
from tests.real.harness import PATIENCE

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


@pytest.fixture
async def server() -> AsyncGenerator[ModelServer]:
    async with open_model_server() as server:
        yield server
    assert server.log.strangers == []


@pytest.fixture
def env(hermitage: IsolatedEnvironment) -> dict[str, str]:
    tools = hermitage.root / "tools"
    tools.mkdir()
    npm = tools / "npm"
    npm.write_text('#!/bin/sh\necho "$@" >> ran\n')
    npm.chmod(0o755)
    programs = (program_of("claude", CLAUDE[0]), program_of("codex", CODEX[0]))
    places = [str(tools), *(str(each.parent) for each in programs), os.environ["PATH"]]
    said = {**hermitage.claude(), **hermitage.codex(), "IS_SANDBOX": "1"}
    path, home = os.pathsep.join(places), str(hermitage.home)
    return environment(hermitage.home, **{**said, "PATH": path, "HOME": home})


def readme_batch() -> tuple[str, list[str]]:
    """Return the rules and the command of the README's first batch."""
    (rules,) = re.findall(r"^```toml\n(\[\[rule\]\]\n.*?)^```$", README, re.MULTILINE | re.DOTALL)
    (command,) = re.findall(r"^sessionmgr (batch jobs.jsonl .*)$", README, re.MULTILINE)
    return rules, shlex.split(command)


def script(command: str) -> ModelScript:
    return [
        [ModelCall(tool="shell", input={"command": command})],
        [ModelSay(text="done"), ModelUse(output=9)],
    ]


async def test_the_first_batch_runs_the_tests_and_shows_what_was_denied(
    server: ModelServer, hermitage: IsolatedEnvironment, env: dict[str, str]
) -> None:
    rules, words = readme_batch()
    jobs: list[dict[str, Json]] = [
        {"id": "login", "prompt": prompt_with(script("npm test")), "cwd": "web"},
        {"id": "parser", "prompt": prompt_with(script("git push")), "cwd": "core"},
        {
            "id": "other",
            "prompt": prompt_with([[ModelSay(text="done"), ModelUse(output=9)]]),
            "cwd": "core",
            "provider": "codex",
        },
    ]
    for name in ("web", "core"):
        (hermitage.root / name).mkdir()
    (hermitage.root / "rules.toml").write_text(rules)
    (hermitage.root / "jobs.jsonl").write_text("".join(json.dumps(each) + "\n" for each in jobs))
    with trio.fail_after(PATIENCE):
        ran = await trio.run_process(
            [*COMMAND, *words], env=env, cwd=hermitage.root, check=False, capture_stderr=True
        )
    said = ran.stderr.decode()
    assert ran.returncode == 0, said
    assert (hermitage.root / "web" / "ran").read_text() == "test\n"
    assert "! parser was denied Bash: git push (no rule allows it)" in said.splitlines()
    summary = json.loads((hermitage.root / "runs/jobs/summary.json").read_bytes())
    denied = [(each["job"], each["summary"]) for each in summary["denials"]]
    assert denied == [("parser", "git push")]
    # Claude Code reports its cost, and Codex does not.
    assert summary["cost"]["provenance"] == "partial"
    assert f"${summary['cost']['usd']:.4f}+ (partial)" in said
