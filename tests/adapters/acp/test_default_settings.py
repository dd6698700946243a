"""Settings of ours for an agent whose user and administrator have set none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace

from sessionmgr_adapters.acp import quirks_of
from sessionmgr_adapters.acp.default_settings import DefaultSettings

VARIABLE: Final = "GEMINI_CLI_SYSTEM_DEFAULTS_PATH"


@pytest.fixture
def settings() -> DefaultSettings:
    """Return Gemini's, as on a machine without files of an administrator."""
    found = quirks_of("gemini").default_settings
    assert found is not None
    return replace(found, places=())


def test_the_agent_is_told_where_our_file_is(settings: DefaultSettings) -> None:
    found = settings.variables({"HOME": "/home/x"})
    assert found.keys() == {VARIABLE}
    content = json.loads(Path(found[VARIABLE]).read_bytes())
    assert content == {"general": {"sessionRetention": {"enabled": False}}}


@pytest.mark.parametrize("name", [VARIABLE, "GEMINI_CLI_SYSTEM_SETTINGS_PATH"])
def test_a_variable_of_the_user_comes_first(settings: DefaultSettings, name: str) -> None:
    assert settings.variables({name: "/theirs.json"}) == {}


def test_a_file_of_the_administrator_comes_first(settings: DefaultSettings, tmp_path: Path) -> None:
    place = tmp_path / "system-defaults.json"
    settings = replace(settings, places=(str(place),))
    assert settings.variables({}).keys() == {VARIABLE}
    place.write_text("{}")
    assert settings.variables({}) == {}
