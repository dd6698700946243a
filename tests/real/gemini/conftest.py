"""A harness for each test, with Gemini CLI in an isolated environment."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from sessionmgr.testing.model_server import ModelServer
from sessionmgr.testing.model_server.isolated_env import IsolatedEnvironment
from tests.real.agent_programs import ACP, program_of
from tests.real.gemini.harness import open_house
from tests.real.harness import RealAgentHarness


@pytest.fixture
def gemini_program() -> Path:
    return program_of("gemini", ACP["gemini"])


@pytest.fixture
async def house(
    server: ModelServer, hermitage: IsolatedEnvironment, gemini_program: Path
) -> AsyncGenerator[RealAgentHarness, None]:
    async with open_house(server, gemini_program, hermitage.work, hermitage.gemini()) as house:
        yield house
