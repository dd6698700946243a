"""The conformance of the adapter with a real agent: with goose, which starts at once."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from sessionmgr.model import Json
from sessionmgr.testing.adapter_conformance import AdapterCase, AdapterConformance, Play
from sessionmgr.testing.mock_sdk import connecting_by
from sessionmgr.testing.model_server import (
    IsolatedEnvironment,
    ModelCall,
    ModelHang,
    ModelRefuse,
    ModelReply,
    ModelSay,
    open_model_server,
    prompt_with,
)
from sessionmgr_adapters.acp import AcpAdapter
from sessionmgr_adapters.acp.sdk import AcpConnection, AcpSpec, connect_acp
from tests.real.acp.agents import InstalledAcpAgent


def play(*script: ModelReply, text: str | None = None) -> Play:
    return Play(prompt=prompt_with(script), text=text)


TOUCH = ModelCall(tool="shell", input={"command": "touch x"})


def hermetic(env: dict[str, str]) -> type[AcpAdapter]:
    """Return the adapter, whose processes get this environment instead of ours."""

    @asynccontextmanager
    async def connected(spec: AcpSpec) -> AsyncGenerator[AcpConnection, None]:
        own = {name: spec.command.env[name] for name in env if name == "OPENCODE_CONFIG_CONTENT"}
        command = msgspec.structs.replace(spec.command, env={**env, **own})
        async with connect_acp(msgspec.structs.replace(spec, command=command)) as connection:
            yield connection

    return connecting_by(connected, AcpAdapter)


@pytest.mark.parametrize("acp_agent", ["goose"], indirect=True)
class TestAcpAgents(AdapterConformance):
    case = AdapterCase(
        adapter=AcpAdapter,
        answers=play(
            [ModelSay(text="I look.", deltas=2), TOUCH], [ModelSay(text="done")], text="done"
        ),
        fails=play([ModelRefuse(status=400, message="Invalid value")]),
        hangs=play([ModelSay(text="half", deltas=2), ModelHang()], text="half"),
        asks=play([TOUCH], [ModelSay(text="done")], text="done"),
        grace=5.0,
        moments=4,
    )

    @pytest.fixture(autouse=True)
    def _agent(self, acp_agent: InstalledAcpAgent) -> None:
        self.agent = acp_agent

    @asynccontextmanager
    async def open_case(self, place: Path) -> AsyncGenerator[AdapterCase, None]:
        async with open_model_server() as server:
            with tempfile.TemporaryDirectory() as root:
                isolated = IsolatedEnvironment(Path(root), server.url, path=os.environ["PATH"])
                env = self.agent.environment(isolated)
                case = replace(self.case, adapter=hermetic(env))
                options: dict[str, Json] = {
                    "agent": self.agent.id,
                    "command": [*self.agent.command],
                }
                for name in ("answers", "fails", "hangs", "asks"):
                    given: Play = getattr(case, name)
                    named = replace(given, options=options)
                    case = replace(case, **{name: named})  # type: ignore[arg-type]
                yield case
            assert server.log.strangers == []


# The canary tests cover that, in every mode.
delattr(TestAcpAgents, "test_a_permission_mode_is_kept_or_refused_and_the_record_says_which")
