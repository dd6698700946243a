"""A harness for each test, with the one release of kimi-cli that has the wire."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from sessionmgr.testing.model_server import ModelServer
from sessionmgr.testing.model_server.isolated_env import IsolatedEnvironment
from tests.real.agent_programs import program_of
from tests.real.harness import RealAgentHarness
from tests.real.kimi.harness import VERSION, kimi_environment, open_house


@pytest.fixture
def kimi_program() -> Path:
    return program_of("kimi-cli", VERSION)


@pytest.fixture
async def house(
    server: ModelServer, hermitage: IsolatedEnvironment, kimi_program: Path
) -> AsyncGenerator[RealAgentHarness, None]:
    async with open_house(
        server, kimi_program, hermitage.work, kimi_environment(hermitage)
    ) as house:
        yield house
