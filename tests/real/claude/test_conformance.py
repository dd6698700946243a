"""Conformance of the Claude adapter with the real program."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

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
from sessionmgr_adapters.claude import ClaudeAdapter
from tests.real.agent_programs import CLAUDE, program_of
from tests.real.claude.harness import hermetic


def play(*script: ModelReply, text: str | None = None) -> Play:
    return Play(prompt=prompt_with(script), text=text)


TOUCH = ModelCall(tool="shell", input={"command": "touch x"})


class TestClaude(AdapterConformance):
    case = AdapterCase(
        adapter=ClaudeAdapter,
        answers=play(
            [ModelSay(text="I look.", deltas=2), TOUCH], [ModelSay(text="done")], text="done"
        ),
        fails=play([ModelRefuse(status=400)]),
        hangs=play([ModelSay(text="half", deltas=2), ModelHang()], text="half"),
        asks=play([TOUCH], [ModelSay(text="done")], text="done"),
        grace=5.0,
        moments=4,  # each starts the program
    )

    @pytest.fixture(autouse=True)
    def _program(self) -> None:
        program_of("claude", CLAUDE[0])

    @asynccontextmanager
    async def open_case(self, place: Path) -> AsyncGenerator[AdapterCase, None]:
        program = str(program_of("claude", CLAUDE[0]))
        async with open_model_server() as server:
            with tempfile.TemporaryDirectory() as root:
                env = IsolatedEnvironment(Path(root), server.url, path=os.environ["PATH"]).claude()
                case = replace(self.case, adapter=hermetic({**env, "IS_SANDBOX": "1"}))
                for name in ("answers", "fails", "hangs", "asks"):
                    given: Play = getattr(case, name)
                    named = replace(given, options={"command": [program]})
                    case = replace(case, **{name: named})  # type: ignore[arg-type]
                yield case
            assert server.log.strangers == []


# The canary tests cover that, in every mode.
delattr(TestClaude, "test_a_permission_mode_is_kept_or_refused_and_the_record_says_which")
