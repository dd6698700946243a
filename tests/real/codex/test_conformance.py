"""The conformance of the Codex adapter with the real program."""

from __future__ import annotations

import dataclasses
import os
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from sessionmgr.adapter.connections import ConnectionSpec
from sessionmgr.process.capture import CaptureLauncher
from sessionmgr.testing.adapter_conformance import AdapterCase, AdapterConformance, Play
from sessionmgr.testing.mock_sdk import connecting_by
from sessionmgr.testing.model_server import (
    ModelCall,
    ModelHang,
    ModelRefuse,
    ModelReply,
    ModelSay,
    open_model_server,
    prompt_with,
)
from sessionmgr.testing.model_server.isolated_env import IsolatedEnvironment
from sessionmgr_adapters.codex import CodexAdapter
from sessionmgr_adapters.codex.sdk import CodexConnection, connect_codex
from tests.real.agent_programs import CODEX, program_of
from tests.real.codex.contract import contract_of, said_in


def play(*script: ModelReply, text: str | None = None) -> Play:
    return Play(prompt=prompt_with(script), text=text)


TOUCH = ModelCall(
    tool="exec_command",
    input={"cmd": "touch x", "sandbox_permissions": "require_escalated", "justification": "?"},
)


def hermetic(env: dict[str, str], talk: Path) -> type[CodexAdapter]:
    """Return the adapter with an isolated environment for its app-servers, and recorded traffic."""

    @asynccontextmanager
    async def connected(spec: ConnectionSpec) -> AsyncGenerator[CodexConnection, None]:
        command = replace(spec.command, env=env)
        launcher = CaptureLauncher(spec.launcher, talk)
        async with connect_codex(replace(spec, command=command, launcher=launcher)) as connection:
            yield connection

    return connecting_by(connected, CodexAdapter)


class TestCodex(AdapterConformance):
    case = AdapterCase(
        adapter=CodexAdapter,
        answers=play(
            [ModelSay(text="I look.", deltas=2), TOUCH], [ModelSay(text="done")], text="done"
        ),
        fails=play([ModelRefuse(status=400)]),
        hangs=play([ModelSay(text="half", deltas=2), ModelHang()], text="half"),
        asks=play([TOUCH], [ModelSay(text="done")], text="done"),
        grace=5.0,
    )

    @pytest.fixture(autouse=True)
    def _program(self) -> None:
        program_of("codex", CODEX[0])

    @asynccontextmanager
    async def open_case(self, place: Path) -> AsyncGenerator[AdapterCase, None]:
        program = program_of("codex", CODEX[0])
        async with open_model_server() as server:
            with tempfile.TemporaryDirectory() as root:
                env = IsolatedEnvironment(Path(root), server.url, path=os.environ["PATH"]).codex()
                talk = place / "talk"
                case = dataclasses.replace(self.case, adapter=hermetic(env, talk))
                for name in ("answers", "fails", "hangs", "asks"):
                    given: Play = getattr(case, name)
                    named = dataclasses.replace(given, options={"command": [str(program)]})
                    case = dataclasses.replace(case, **{name: named})  # type: ignore[arg-type]
                yield case
            assert server.log.strangers == []
        contract = await contract_of(program)
        for name, entries in said_in(talk):
            assert contract.faults(entries) == [], name
