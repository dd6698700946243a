"""Conformance of the Kimi adapter: with a mock SDK, and with a player."""

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
from tests.adapters.kimi.dialect import KIMI
from tests.adapters.kimi.mock_agent import agent_of_frames
from tests.adapters.kimi.mocked_manager import UncheckedKimi

CASE = AdapterCase(
    adapter=UncheckedKimi,
    answers=Play(prompt="say one two; use hammer; three", text="three"),
    fails=Play(prompt="half; fail at last", text="half"),
    hangs=Play(prompt="half; wait 1000", text="half"),
    deaf=Play(prompt="half; deaf 1000", text="half"),
    asks=Play(prompt="ask saw; done", text="done"),
    virtual=True,
)


class TestKimiMocked(AdapterConformance):
    """In virtual time, the complete adapter without its sdk."""

    case = CASE

    @pytest.fixture(autouse=True)
    def _isolated(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """Hide an installed Kimi and the user's settings."""
        monkeypatch.setenv("PATH", "/nowhere")
        monkeypatch.setenv("KIMI_SHARE_DIR", str(tmp_path))

    @asynccontextmanager
    async def open_case(self, place: Path) -> AsyncGenerator[AdapterCase, None]:
        async with MockSdk(agent_of_frames) as sdk:
            yield replace(self.case, adapter=with_sdk(UncheckedKimi, sdk))


class TestKimiPlayed(AdapterConformance):
    """A misbehaving program instead of Kimi."""

    case = AdapterCase(
        adapter=UncheckedKimi, answers=Play(prompt="anything"), dialect=KIMI, grace=1.0
    )

    @pytest.fixture(autouse=True)
    def _in_a_hurry(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """Use the real waits for unresponsive processes, but shorter; and no settings."""
        monkeypatch.setenv("KIMI_SHARE_DIR", str(tmp_path))
        monkeypatch.setattr(stdio_child, "LADDER", Escalation(polite=0.5, term=0.5))


for name in list(vars(TestKimiPlayed)):  # the other tests need a complete agent
    if name.startswith("test_") and not name.startswith("test_an_agent_that_"):
        delattr(TestKimiPlayed, name)
