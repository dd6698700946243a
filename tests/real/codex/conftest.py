"""Fixtures: a harness for each test, with the newest Codex or with each version."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from sessionmgr.testing.model_server import ModelServer
from sessionmgr.testing.model_server.isolated_env import IsolatedEnvironment
from tests.real.agent_programs import CODEX, program_of
from tests.real.codex.harness import open_house
from tests.real.harness import RealAgentHarness


@pytest.fixture
def newest() -> Path:
    return program_of("codex", CODEX[0])


@pytest.fixture
def oldest() -> Path:
    return program_of("codex", CODEX[-1])


@pytest.fixture
async def house(
    server: ModelServer, hermitage: IsolatedEnvironment, newest: Path
) -> AsyncGenerator[RealAgentHarness, None]:
    async with open_house(server, newest, hermitage.work, hermitage.codex(retries=1)) as house:
        yield house


@pytest.fixture
async def any_house(
    server: ModelServer, hermitage: IsolatedEnvironment, codex_program: tuple[str, Path]
) -> AsyncGenerator[RealAgentHarness, None]:
    program = codex_program[1]
    async with open_house(server, program, hermitage.work, hermitage.codex(retries=1)) as house:
        yield house


@pytest.fixture
async def old_house(
    server: ModelServer, hermitage: IsolatedEnvironment, oldest: Path
) -> AsyncGenerator[RealAgentHarness, None]:
    async with open_house(server, oldest, hermitage.work, hermitage.codex(retries=1)) as house:
        yield house
