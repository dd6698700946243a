"""The conformance of the Codex adapter, with a mock `sdk` and with a player."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from sessionmgr.adapter.kit import stdio_child
from sessionmgr.process.escalation import Escalation
from sessionmgr.testing.adapter_conformance import AdapterCase, AdapterConformance, Play
from sessionmgr.testing.mock_sdk import MockSdk, with_sdk
from sessionmgr_adapters.codex import CodexAdapter
from tests.adapters.codex.dialect import CODEX
from tests.adapters.codex.mock_agent import agent_of_frames

CASE = AdapterCase(
    adapter=CodexAdapter,
    answers=Play(prompt="say one two; use hammer; three", text="three"),
    fails=Play(prompt="half; fail at last", text="half"),
    hangs=Play(prompt="half; wait 1000", text="half"),
    deaf=Play(prompt="half; deaf 1000", text="half"),
    asks=Play(prompt="ask saw; done", text="done"),
    virtual=True,
)


class TestCodexMocked(AdapterConformance):
    """In virtual time, with a mock `sdk`."""

    case = CASE

    @asynccontextmanager
    async def open_case(self, place: Path) -> AsyncGenerator[AdapterCase, None]:
        async with MockSdk(agent_of_frames) as sdk:
            yield replace(self.case, adapter=with_sdk(CodexAdapter, sdk))


class TestCodexPlayed(AdapterConformance):
    """With a misbehaving program in place of Codex."""

    case = AdapterCase(
        adapter=CodexAdapter, answers=Play(prompt="anything"), dialect=CODEX, grace=1.0
    )

    @pytest.fixture(autouse=True)
    def _in_a_hurry(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Shorten the time limits for unresponsive programs."""
        monkeypatch.setattr(stdio_child, "LADDER", Escalation(polite=0.5, term=0.5))


for name in list(vars(TestCodexPlayed)):  # the other behaviours need a complete agent
    if name.startswith("test_") and not name.startswith("test_an_agent_that_"):
        delattr(TestCodexPlayed, name)
