"""Conformance of the Amp adapter: with a mock SDK, and with a player."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from sessionmgr.process import Escalation
from sessionmgr.testing.adapter_conformance import AdapterCase, AdapterConformance, Play
from sessionmgr.testing.mock_sdk import MockSdk, with_sdk
from sessionmgr_adapters.amp import AmpAdapter, sdk as amp_sdk
from tests.adapters.amp.dialect import AMP
from tests.adapters.amp.mock_agent import ENVIRON, agent_of_frames

CASE = AdapterCase(
    adapter=AmpAdapter,
    answers=Play(prompt="say one two; use hammer; three", text="three"),
    fails=Play(prompt="half; fail at last", text="half"),
    hangs=Play(prompt="half; wait 1000", text="half"),
    deaf=Play(prompt="half; deaf 1000", text="half"),
    virtual=True,
)


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AMP_API_KEY", ENVIRON["AMP_API_KEY"])
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("AMP_SETTINGS_FILE", raising=False)


class TestAmpMocked(AdapterConformance):
    """In virtual time, the complete adapter without its sdk."""

    case = CASE

    @asynccontextmanager
    async def open_case(self, place: Path) -> AsyncGenerator[AdapterCase, None]:
        async with MockSdk(agent_of_frames) as sdk:
            yield replace(self.case, adapter=with_sdk(AmpAdapter, sdk))


class TestAmpPlayed(AdapterConformance):
    """A misbehaving program instead of Amp."""

    case = AdapterCase(adapter=AmpAdapter, answers=Play(prompt="anything"), dialect=AMP, grace=1.0)

    @pytest.fixture(autouse=True)
    def _in_a_hurry(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Use the real waits for unresponsive processes, but shorter."""
        monkeypatch.setattr(amp_sdk, "LADDER", Escalation(polite=0.5, term=0.5))


for name in list(vars(TestAmpPlayed)):  # the other tests need a complete agent
    # A flood of whole messages has the last one as its text; `test_player.py` has that test.
    is_flood = name == "test_an_agent_that_floods_does_no_harm"
    if is_flood or (name.startswith("test_") and not name.startswith("test_an_agent_that_")):
        delattr(TestAmpPlayed, name)
