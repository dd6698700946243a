"""An isolated environment for each test, with the newest Claude Code, or with each version."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from sessionmgr.testing.model_server import ModelServer
from sessionmgr.testing.model_server.isolated_env import IsolatedEnvironment
from tests.real.agent_programs import CLAUDE, program_of
from tests.real.claude.harness import RealAgentHarness, open_house


@pytest.fixture
def newest() -> Path:
    return program_of("claude", CLAUDE[0])


@pytest.fixture
def oldest() -> Path:
    return program_of("claude", CLAUDE[-1])


@pytest.fixture
async def house(
    server: ModelServer, hermitage: IsolatedEnvironment, newest: Path
) -> AsyncGenerator[RealAgentHarness, None]:
    env = {**hermitage.claude(retries=1), "IS_SANDBOX": "1"}
    async with open_house(server, newest, hermitage.work, env) as house:
        yield house


@pytest.fixture
async def any_house(
    server: ModelServer, hermitage: IsolatedEnvironment, claude_program: tuple[str, Path]
) -> AsyncGenerator[RealAgentHarness, None]:
    env = {**hermitage.claude(retries=1), "IS_SANDBOX": "1"}
    async with open_house(server, claude_program[1], hermitage.work, env) as house:
        yield house


@pytest.fixture
async def old_house(
    server: ModelServer, hermitage: IsolatedEnvironment, oldest: Path
) -> AsyncGenerator[RealAgentHarness, None]:
    env = {**hermitage.claude(retries=1), "IS_SANDBOX": "1"}
    async with open_house(server, oldest, hermitage.work, env) as house:
        yield house
