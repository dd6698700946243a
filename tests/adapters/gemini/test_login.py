"""Whether Gemini is installed and logged in, judging by files and variables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sessionmgr.adapter import Health
from sessionmgr_adapters.gemini import GeminiAdapter, GeminiOptions
from sessionmgr_adapters.gemini.login import gemini_health


@pytest.fixture
def place(tmp_path: Path) -> Path:
    program = tmp_path / "bin" / "gemini"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (tmp_path / "home" / ".gemini").mkdir(parents=True)
    (tmp_path / "work").mkdir()
    return tmp_path


def health(place: Path, options: GeminiOptions | None = None, **env: str) -> Health:
    known = {"PATH": str(place / "bin"), "HOME": str(place / "home"), **env}
    return gemini_health(options or GeminiOptions(), known, str(place / "work"))


def choose(place: Path, method: str) -> None:
    settings = {"security": {"auth": {"selectedType": method}}}
    (place / "home" / ".gemini" / "settings.json").write_text(json.dumps(settings))


def test_a_program_that_is_missing_is_named(place: Path) -> None:
    (place / "bin" / "gemini").unlink()
    found = health(place)
    assert found.state == "skip"
    assert "npm install -g @google/gemini-cli" in found.detail


def test_a_program_of_another_name_has_an_unknown_login(place: Path) -> None:
    (place / "bin" / "gemini").rename(place / "bin" / "other")
    found = health(place, GeminiOptions(command=("other",)))
    assert (found.state, found.detail) == ("ok", "other is installed; its login is unknown")


def test_without_any_login_it_says_what_to_do(place: Path) -> None:
    found = health(place)
    assert found.state == "fail"
    assert "set GEMINI_API_KEY" in found.detail


@pytest.mark.parametrize(
    ("method", "env", "words"),
    [
        (None, {"GEMINI_API_KEY": "key-1"}, "GEMINI_API_KEY is set"),
        ("gemini-api-key", {"GEMINI_API_KEY": "key-1"}, "GEMINI_API_KEY is set"),
        ("vertex-ai", {"GOOGLE_API_KEY": "key-1"}, "GOOGLE_API_KEY is set"),
        (
            None,
            {"GOOGLE_GENAI_USE_VERTEXAI": "true", "GOOGLE_CLOUD_PROJECT": "p"},
            "GOOGLE_CLOUD_PROJECT is set",
        ),
        ("gemini-api-key", {}, "GEMINI_API_KEY is not set"),
        ("oauth-personal", {}, "may be in the keyring"),
        (None, {"GOOGLE_GENAI_USE_GCA": "true"}, "may be in the keyring"),
        ("gateway", {}, "its login method is 'gateway'"),
        (None, {"HOME": ""}, "HOME is not set"),
    ],
)
def test_a_login_is_found_or_unknown(
    place: Path, method: str | None, env: dict[str, str], words: str
) -> None:
    if method is not None:
        choose(place, method)
    found = health(place, None, **env)
    assert found.state == "ok"
    assert words in found.detail
    assert "key-1" not in found.detail


def test_tokens_of_google_are_a_login(place: Path) -> None:
    choose(place, "oauth-personal")
    (place / "home" / ".gemini" / "oauth_creds.json").write_text('{"access_token": "t"}')
    assert "oauth_creds.json" in health(place).detail


def test_a_file_of_variables_may_contain_a_key(place: Path) -> None:
    (place / "work" / ".env").touch()
    found = health(place)
    assert found.state == "ok"
    assert ".env may contain a key" in found.detail


def test_settings_that_cannot_be_read_are_named(place: Path) -> None:
    (place / "home" / ".gemini" / "settings.json").write_text("{ // mine\n}")
    found = health(place)
    assert found.state == "ok"
    assert "settings.json" in found.detail


def test_a_home_of_its_own_counts(place: Path) -> None:
    (place / "home" / ".gemini").rename(place / "work" / ".gemini")
    (place / "work" / ".gemini" / "oauth_creds.json").write_text('{"access_token": "t"}')
    (place / "work" / ".gemini" / "settings.json").write_text(
        '{"security": {"auth": {"selectedType": "oauth-personal"}}}'
    )
    assert "oauth_creds.json" in health(place, GeminiOptions(home=".")).detail


async def test_the_adapter_reports_it(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    env = {"PATH": str(place / "bin"), "HOME": str(place / "home"), "GEMINI_API_KEY": "key-1"}
    found = GeminiAdapter.readiness(GeminiOptions(), env, str(place / "work"))
    assert "GEMINI_API_KEY is set" in found.detail
    monkeypatch.setenv("PATH", str(place))
    assert (await GeminiAdapter().health()).state == "skip"
