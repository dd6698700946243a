"""The conformance of the ACP adapter, with a mock `sdk` and with a player."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from sessionmgr.adapter.kit import stdio_child
from sessionmgr.model import Json
from sessionmgr.process.escalation import Escalation
from sessionmgr.testing.adapter_conformance import AdapterCase, AdapterConformance, Play
from sessionmgr.testing.mock_sdk import MockSdk, with_sdk
from sessionmgr_adapters.acp import AcpAdapter
from tests.adapters.acp.dialect import ACP
from tests.adapters.acp.mock_agent import agent_of_frames

MOCK: Final[dict[str, Json]] = {"command": ["mock-agent"]}
CASE: Final = AdapterCase(
    adapter=AcpAdapter,
    answers=Play(prompt="say one two; use hammer; three", text="three", options=MOCK),
    fails=Play(prompt="half; fail at last", text="half", options=MOCK),
    hangs=Play(prompt="half; wait 1000", text="half", options=MOCK),
    deaf=Play(prompt="half; deaf 1000", text="half", options=MOCK),
    asks=Play(prompt="ask saw; done", text="done", options=MOCK),
    virtual=True,
)


class TestAcpMocked(AdapterConformance):
    """In virtual time, with a mock `sdk`."""

    case = CASE

    @asynccontextmanager
    async def open_case(self, place: Path) -> AsyncGenerator[AdapterCase, None]:
        async with MockSdk(agent_of_frames) as sdk:
            yield replace(self.case, adapter=with_sdk(AcpAdapter, sdk))


class TestAcpPlayed(AdapterConformance):
    """With a misbehaving program in place of an agent."""

    case = AdapterCase(adapter=AcpAdapter, answers=Play(prompt="anything"), dialect=ACP, grace=1.0)

    @pytest.fixture(autouse=True)
    def _in_a_hurry(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Shorten the time limits for unresponsive programs."""
        monkeypatch.setattr(stdio_child, "LADDER", Escalation(polite=0.5, term=0.5))


for name in list(vars(TestAcpPlayed)):  # the other behaviours need a complete agent
    if name.startswith("test_") and not name.startswith("test_an_agent_that_"):
        delattr(TestAcpPlayed, name)
