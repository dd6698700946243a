"""Fixtures for the tests with real agents: an isolated environment, a model server, a recorder."""

import os
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest

from sessionmgr.testing.model_server import ModelServer, open_model_server
from sessionmgr.testing.model_server.isolated_env import IsolatedEnvironment
from tests.real.agent_process import AgentProgram
from tests.real.agent_programs import ACP, CLAUDE, CODEX, program_of
from tests.real.golden_files import write_golden

VERSIONS = {"acp_agent": sorted(ACP), "claude_program": CLAUDE, "codex_program": CODEX}
"""The agents, or versions of one, with which a test runs; the first version is the newest."""
ALWAYS = ("permissions", "user_rules")
"""Words in the names of files whose tests run with each agent: what an agent does may harm."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record", action="store_true", help="write the golden files anew")
    parser.addoption(
        "--sample",
        action="store_true",
        help="run a test with half of the agents over ACP, or of the older versions, unless it is "
        "of permissions",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--sample", default=False):
        return
    left_out = [each for each in items if not is_in_sample(each)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [each for each in items if each not in left_out]


def is_in_sample(item: pytest.Item) -> bool:
    """Whether the test runs with this agent: of the pairs of both, every second one."""
    if not isinstance(item, pytest.Function) or any(each in item.path.name for each in ALWAYS):
        return True
    params: dict[str, object] = item.callspec.params if hasattr(item, "callspec") else {}
    name = next((each for each in VERSIONS if each in params), None)
    if name is None:
        return True
    place = VERSIONS[name].index(str(params[name]))
    is_newest = place == 0 and name != "acp_agent"
    return is_newest or (len(item.originalname) + place) % 2 == 0


@pytest.fixture
async def server() -> AsyncGenerator[ModelServer]:
    """Serve a model; the agents must not have tried to connect to any other host."""
    async with open_model_server() as server:
        yield server
    assert server.log.strangers == []


@pytest.fixture
def hermitage(tmp_path: Path, server: ModelServer) -> IsolatedEnvironment:
    """Return an isolated environment."""
    return IsolatedEnvironment(tmp_path, server.url, path=os.environ["PATH"])


# The programs are separate synchronous fixtures, because only those may skip a test.
@pytest.fixture(params=CLAUDE)
def claude_program(request: pytest.FixtureRequest) -> tuple[str, Path]:
    return request.param, program_of("claude", request.param)


@pytest.fixture(params=CODEX)
def codex_program(request: pytest.FixtureRequest) -> tuple[str, Path]:
    return request.param, program_of("codex", request.param)


@pytest.fixture
def claude(
    request: pytest.FixtureRequest, claude_program: tuple[str, Path], hermitage: IsolatedEnvironment
) -> Generator[AgentProgram]:
    record = _place_for_records(request, hermitage)
    agent = AgentProgram("claude", *claude_program, hermitage.claude(), hermitage.work, record)
    yield agent
    _write_golden(request, agent, hermitage)


@pytest.fixture
def codex(
    request: pytest.FixtureRequest, codex_program: tuple[str, Path], hermitage: IsolatedEnvironment
) -> Generator[AgentProgram]:
    record = _place_for_records(request, hermitage)
    agent = AgentProgram("codex", *codex_program, hermitage.codex(), hermitage.work, record)
    yield agent
    _write_golden(request, agent, hermitage)


def _place_for_records(
    request: pytest.FixtureRequest, hermitage: IsolatedEnvironment
) -> Path | None:
    return hermitage.root if request.config.getoption("--record", default=False) else None


def _write_golden(
    request: pytest.FixtureRequest, agent: AgentProgram, hermitage: IsolatedEnvironment
) -> None:
    title = request.node.name.partition("[")[0].removeprefix("test_")
    case: str = getattr(request.node, "callspec").id  # noqa: B009
    case = case.replace(agent.version, "").strip("-")
    for number, file in enumerate(agent.recorded, 1):
        which = [case] if case else []
        if len(agent.recorded) > 1:
            which.append(str(number))
        write_golden(agent.name, agent.version, "-".join([title, *which]), file, hermitage.root)
