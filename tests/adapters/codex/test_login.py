"""Codex's login is detected from variables and files alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from sessionmgr_adapters.codex import CodexOptions
from sessionmgr_adapters.codex.login import codex_health

PROVIDER = '[model_providers.fake]\nbase_url = "http://127.0.0.1:9"\n'
KEYED = f'model_provider = "fake"\n{PROVIDER}env_key = "FAKE_KEY"\n'
AUTH = '{"OPENAI_API_KEY": "sk-secret"}'
TOKENS = '{"auth_mode": "chatgpt", "tokens": {"access_token": "sk-secret"}}'


def place(root: Path, config: str = "", auth: str | None = None) -> dict[str, str]:
    """Write a Codex home, and return an environment with Codex."""
    for name in ("bin", "home/.codex", "work"):
        (root / name).mkdir(parents=True, exist_ok=True)
    program = root / "bin" / "codex"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    (root / "home/.codex/config.toml").write_text(config)
    if auth is not None:
        (root / "home/.codex/auth.json").write_text(auth)
    return {"PATH": str(root / "bin"), "HOME": str(root / "home")}


@pytest.mark.parametrize(
    ("config", "auth", "variables", "options", "said"),
    [
        ("", AUTH, {}, {}, "home/.codex/auth.json"),
        ("", TOKENS, {}, {}, "home/.codex/auth.json"),
        ("", None, {"CODEX_API_KEY": "sk-secret"}, {"exec": True}, "CODEX_API_KEY is set"),
        (KEYED, None, {"FAKE_KEY": "sk-secret"}, {}, "FAKE_KEY is set (for 'fake')"),
        (f'model_provider="fake"\n{PROVIDER}', None, {}, {}, "'fake' needs no login"),
        (PROVIDER, None, {}, {"model_provider": "fake"}, "'fake' needs no login"),
        (PROVIDER, None, {}, {"config": {"model_provider": "fake"}}, "'fake' needs no login"),
        (
            f'profile = "p"\n[profiles.p]\nmodel_provider = "fake"\n{PROVIDER}',
            None,
            {},
            {},
            "'fake' needs no login",
        ),
    ],
)
def test_a_login_is_found_and_named_without_its_secret(
    tmp_path: Path,
    config: str,
    auth: str | None,
    variables: dict[str, str],
    options: dict[str, object],
    said: str,
) -> None:
    env = place(tmp_path, config, auth) | variables
    health = codex_health(CodexOptions(**options), env, str(tmp_path / "work"))  # type: ignore[arg-type]
    assert health.state == "ok"
    assert health.detail.endswith(said)
    assert "unknown" not in health.detail
    assert "secret" not in health.detail


@pytest.mark.parametrize(
    ("config", "auth", "variables", "said"),
    [
        ("", None, {}, "Codex is not logged in; run `codex login`"),
        ("", "{}", {}, "Codex is not logged in; run `codex login`"),
        ("", None, {"CODEX_API_KEY": "k"}, "Codex is not logged in; run `codex login`"),
        ("", None, {"OPENAI_API_KEY": "k"}, "not logged in (Codex does not use OPENAI_API_KEY); "),
        (f"{KEYED}requires_openai_auth = true\n", None, {"FAKE_KEY": "k"}, "Codex is not logged"),
        (KEYED, AUTH, {}, "FAKE_KEY is not set, and the model provider 'fake' takes its key"),
    ],
)
def test_a_missing_login_fails_and_says_what_to_do(
    tmp_path: Path, config: str, auth: str | None, variables: dict[str, str], said: str
) -> None:
    env = place(tmp_path, config, auth) | variables
    health = codex_health(CodexOptions(), env, str(tmp_path / "work"))
    assert health.state == "fail"
    assert said in health.detail


@pytest.mark.parametrize(
    ("config", "auth", "variables", "why"),
    [
        ('cli_auth_credentials_store = "keyring"\n', None, {}, "in the keyring"),
        ('openai_base_url = "http://127.0.0.1:9"\n', None, {}, "another address than OpenAI's"),
        ('model_provider = "nowhere"\n', None, {}, "'nowhere' is not configured in"),
        ("[", None, {}, "config.toml is not TOML"),
        ("", "no JSON", {}, "auth.json is not a JSON object"),
        ("", '{"agent_identity": {"x": 1}}', {}, "neither a key nor tokens"),
        ("", None, {"CODEX_ACCESS_TOKEN": "x"}, "CODEX_ACCESS_TOKEN is set"),
        ("", None, {"HOME": ""}, "HOME is not set"),
    ],
)
def test_what_cannot_be_known_is_no_failure(
    tmp_path: Path, config: str, auth: str | None, variables: dict[str, str], why: str
) -> None:
    env = place(tmp_path, config, auth) | variables
    health = codex_health(CodexOptions(), env, str(tmp_path / "work"))
    assert health.state == "ok"
    assert "its login is unknown: " in health.detail
    assert why in health.detail


def test_a_project_that_may_name_another_provider_leaves_it_open(tmp_path: Path) -> None:
    env = place(tmp_path)
    project = tmp_path / "work" / ".codex"
    project.mkdir()
    (project / "config.toml").write_text(f'model_provider = "fake"\n{PROVIDER}')
    health = codex_health(CodexOptions(), env, str(tmp_path / "work"))
    assert health.state == "ok"
    assert "may name another model provider" in health.detail


def test_a_home_of_its_own_is_looked_at(tmp_path: Path) -> None:
    env = place(tmp_path, auth=AUTH)
    (tmp_path / "other").mkdir()
    assert codex_health(CodexOptions(home="../other"), env, str(tmp_path / "work")).state == "fail"
    env |= {"CODEX_HOME": str(tmp_path / "other")}
    assert codex_health(CodexOptions(), env, str(tmp_path / "work")).state == "fail"


def test_a_program_that_is_not_installed_is_left_out_with_how_to_install_it(tmp_path: Path) -> None:
    health = codex_health(CodexOptions(), {"PATH": str(tmp_path)}, str(tmp_path))
    assert health.state == "skip"
    assert health.detail.startswith("program 'codex' not found on PATH; install Codex")


def test_the_login_of_another_program_is_unknown(tmp_path: Path) -> None:
    health = codex_health(CodexOptions(command=("/bin/sh",)), {}, str(tmp_path))
    assert (health.state, health.detail) == ("ok", "/bin/sh is installed; its login is unknown")
