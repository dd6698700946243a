"""Fixtures for the tests with agents that speak the Agent Client Protocol.

The name of an agent in a test's id selects it: `pytest tests/real/acp -k "gemini or kimi-cli"`.
"""

from collections.abc import AsyncGenerator

import pytest

from sessionmgr.testing.model_server import IsolatedEnvironment, ModelServer
from tests.real.acp.agents import InstalledAcpAgent, installed_agent
from tests.real.acp.harness import AcpHarness, open_house
from tests.real.agent_programs import ACP


@pytest.fixture(params=sorted(ACP))
def acp_agent(request: pytest.FixtureRequest) -> InstalledAcpAgent:
    return installed_agent(request.param)


@pytest.fixture
async def house(
    server: ModelServer, hermitage: IsolatedEnvironment, acp_agent: InstalledAcpAgent
) -> AsyncGenerator[AcpHarness]:
    env = acp_agent.environment(hermitage)
    async with open_house(server, acp_agent, hermitage.work, env) as house:
        yield house
