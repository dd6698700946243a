"""The programs of the pages about agents run on the real agents, with a scripted model."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator

import pytest
import trio

from sessionmgr.testing.model_server import ModelServer, open_model_server
from sessionmgr.testing.model_server.isolated_env import IsolatedEnvironment
from tests.pages import AGENTS, Block, blocks
from tests.real.agent_programs import ACP, CLAUDE, CODEX, program_of
from tests.real.harness import PATIENCE

OVER_ACP = ("gemini", "goose")
PROGRAMS = [block for block in blocks("python") if block.page in AGENTS]


@pytest.fixture
async def server() -> AsyncGenerator[ModelServer]:
    async with open_model_server() as server:
        yield server
    assert server.log.strangers == []


@pytest.fixture
def env(hermitage: IsolatedEnvironment) -> dict[str, str]:
    versions = {"claude": CLAUDE[0], "codex": CODEX[0], **{name: ACP[name] for name in OVER_ACP}}
    programs = [program_of(name, version) for name, version in versions.items()]
    places = [*(str(each.parent) for each in programs), os.environ["PATH"]]
    agents = {**hermitage.claude(), **hermitage.codex(), **hermitage.gemini(), **hermitage.goose()}
    given = {**agents, "IS_SANDBOX": "1"}
    paths = {"PATH": os.pathsep.join(places), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return {**given, **paths}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda block: block.name)
async def test_a_program_of_an_agents_page_runs(
    program: Block, hermitage: IsolatedEnvironment, env: dict[str, str]
) -> None:
    path = hermitage.work / "example.py"
    path.write_text(program.text, encoding="utf-8")
    with trio.fail_after(PATIENCE):
        ran = await trio.run_process(
            [sys.executable, "-X", "utf8", "-W", "error", str(path)],
            cwd=hermitage.work,
            env=env,
            check=False,
            capture_stdout=True,
            capture_stderr=True,
        )
    assert ran.returncode == 0, ran.stderr.decode()
    assert ran.stdout.decode().splitlines()[-1] == "completed"


def test_each_page_of_an_agent_has_programs() -> None:
    assert {block.page for block in PROGRAMS} == set(AGENTS)
