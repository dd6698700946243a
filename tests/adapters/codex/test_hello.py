"""What an app-server's configuration says."""

from __future__ import annotations

import pytest

from sessionmgr.model import Json
from sessionmgr_adapters.codex.hello import keys_in


@pytest.mark.parametrize(
    "config",
    [
        {"model_providers.a.env_key": "WORD"},
        {"model_providers.a": {"env_key": "WORD", "name": "env_key"}},
        {"model_providers": {"a": {"env_key": "WORD"}}, "model": "x"},
    ],
)
def test_the_keys_that_overrides_name_are_found(config: dict[str, Json]) -> None:
    assert keys_in(config) == ("WORD",)
