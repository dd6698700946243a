"""The conformance of the Kimi adapter with the real program."""

from __future__ import annotations

import dataclasses
import os
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

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
from sessionmgr_adapters.kimi.launch import KimiSpec
from sessionmgr_adapters.kimi.sdk import KimiConnection, connect_kimi
from sessionmgr_adapters.kimi.wire_adapter import KimiWireAdapter
from tests.adapters.kimi.mocked_manager import UncheckedKimi
from tests.real.agent_programs import program_of
from tests.real.kimi.harness import VERSION, kimi_environment


def play(*script: ModelReply, text: str | None = None) -> Play:
    return Play(prompt=prompt_with(script), text=text)


TOUCH = ModelCall(tool="shell", input={"command": "touch x"})


def hermetic(env: dict[str, str]) -> type[KimiWireAdapter]:
    """Return the adapter, whose processes get this environment instead of ours."""

    @asynccontextmanager
    async def connected(spec: KimiSpec) -> AsyncGenerator[KimiConnection, None]:
        command = replace(spec.command, env=env)
        async with connect_kimi(replace(spec, command=command)) as connection:
            yield connection

    return connecting_by(connected, UncheckedKimi)


class TestKimi(AdapterConformance):
    case = AdapterCase(
        adapter=KimiWireAdapter,
        answers=play(
            [ModelSay(text="I look.", deltas=2), TOUCH], [ModelSay(text="done")], text="done"
        ),
        fails=play([ModelRefuse(status=400)]),
        hangs=play([ModelSay(text="half", deltas=2), ModelHang()], text="half"),
        asks=play([TOUCH], [ModelSay(text="done")], text="done"),
        grace=5.0,
        moments=2,  # each starts the program
    )

    @pytest.fixture(autouse=True)
    def _program(self) -> None:
        program_of("kimi-cli", VERSION)

    @asynccontextmanager
    async def open_case(self, place: Path) -> AsyncGenerator[AdapterCase, None]:
        program = program_of("kimi-cli", VERSION)
        async with open_model_server() as server:
            with tempfile.TemporaryDirectory() as root:
                isolated = IsolatedEnvironment(Path(root), server.url, path=os.environ["PATH"])
                case = dataclasses.replace(self.case, adapter=hermetic(kimi_environment(isolated)))
                for name in ("answers", "fails", "hangs", "asks"):
                    given: Play = getattr(case, name)
                    named = dataclasses.replace(given, options={"command": [str(program)]})
                    case = dataclasses.replace(case, **{name: named})  # type: ignore[arg-type]
                yield case
            assert server.log.strangers == []
