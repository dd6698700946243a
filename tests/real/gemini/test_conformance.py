"""Conformance of the Gemini adapter with the real program."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from sessionmgr.model import Json
from sessionmgr.testing.adapter_conformance import AdapterCase, AdapterConformance, Play
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
from sessionmgr_adapters.gemini.headless import GeminiHeadlessAdapter
from tests.real.agent_programs import ACP, program_of


def play(*script: ModelReply, text: str | None = None) -> Play:
    return Play(prompt=prompt_with(script), text=text)


READ = ModelCall(tool="read", input={"path": "x"})


class TestGemini(AdapterConformance):
    case = AdapterCase(
        adapter=GeminiHeadlessAdapter,
        answers=play(
            [ModelSay(text="I look.", deltas=2), READ], [ModelSay(text="done")], text="done"
        ),
        fails=play([ModelRefuse(status=400)]),
        hangs=play([ModelSay(text="half", deltas=2), ModelHang()], text="half"),
        grace=5.0,
        moments=2,  # each starts the program
    )

    @pytest.fixture(autouse=True)
    def _program(self) -> None:
        program_of("gemini", ACP["gemini"])

    @asynccontextmanager
    async def open_case(self, place: Path) -> AsyncGenerator[AdapterCase, None]:
        program = str(program_of("gemini", ACP["gemini"]))
        async with open_model_server() as server:
            with tempfile.TemporaryDirectory() as root:
                env = IsolatedEnvironment(Path(root), server.url, path=os.environ["PATH"]).gemini()
                said = [f"{name}={value}" for name, value in env.items()]
                command: list[Json] = ["/usr/bin/env", "-i", *said, program]
                options: dict[str, Json] = {"command": command, "home": env["GEMINI_CLI_HOME"]}
                case = self.case
                for name in ("answers", "fails", "hangs"):
                    given: Play = getattr(case, name)
                    named = replace(given, options=options)
                    case = replace(case, **{name: named})  # type: ignore[arg-type]
                yield case
            assert server.log.strangers == []
