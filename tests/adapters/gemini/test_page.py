"""The page of the Gemini adapter agrees with the code."""

from pathlib import Path

import pytest

import sessionmgr_adapters.gemini
from sessionmgr.model import PermissionMode
from sessionmgr_adapters.gemini import GeminiAdapter, GeminiOptions
from sessionmgr_adapters.gemini.headless.launch import TIERS
from sessionmgr_adapters.gemini.permissions import HEADLESS_PERMISSIONS

PAGE = Path(sessionmgr_adapters.gemini.__file__).with_name("README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("option", GeminiOptions.__struct_fields__)
def test_each_option_is_explained(option: str) -> None:
    assert f"| `{option}` |" in PAGE


@pytest.mark.parametrize("mode", HEADLESS_PERMISSIONS.modes)
@pytest.mark.parametrize("headless", [True, False])
def test_each_permission_mode_is_explained(mode: PermissionMode, *, headless: bool) -> None:
    mapped = GeminiAdapter.permission_map(GeminiOptions(headless=headless)).modes[mode]
    assert f"| {mode} | {mapped.effective} | {mapped.fidelity} |" in PAGE


def test_each_tier_of_models_is_explained() -> None:
    for ours, theirs in TIERS.items():
        assert f"`{ours}` is" in PAGE
        assert f"`{theirs}`" in PAGE
