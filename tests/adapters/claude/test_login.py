"""Claude Code's login is detected from variables and files alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sessionmgr_adapters.claude import ClaudeOptions, login
from sessionmgr_adapters.claude.login import claude_health

OAUTH = {
    "claudeAiOauth": {
        "accessToken": "sk-secret-access",
        "refreshToken": "sk-secret",
        "expiresAt": 1,
        "scopes": ["user:inference"],
    }
}
Files = dict[str, object]


def program(directory: Path, name: str = "claude") -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / name
    file.write_text("#!/bin/sh\nexit 1\n")
    file.chmod(0o755)
    return file


def place(root: Path, files: Files) -> dict[str, str]:
    """Write files into a home and a project, and return an environment with Claude Code."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    program(root / "bin")
    (root / "work").mkdir(exist_ok=True)
    (root / "home").mkdir(exist_ok=True)
    return {"PATH": str(root / "bin"), "HOME": str(root / "home")}


LOGGED_IN: dict[str, tuple[dict[str, str], Files]] = {
    "ANTHROPIC_API_KEY is set": ({"ANTHROPIC_API_KEY": "sk-secret"}, {}),
    "ANTHROPIC_AUTH_TOKEN is set": ({"ANTHROPIC_AUTH_TOKEN": "sk-secret"}, {}),
    "CLAUDE_CODE_OAUTH_TOKEN is set": ({"CLAUDE_CODE_OAUTH_TOKEN": "sk-secret"}, {}),
    "CLAUDE_CODE_USE_BEDROCK is set": ({"CLAUDE_CODE_USE_BEDROCK": "1"}, {}),
    "CLAUDE_CODE_USE_VERTEX is set": (
        {},
        {"home/.claude/settings.json": {"env": {"CLAUDE_CODE_USE_VERTEX": "true"}}},
    ),
    "home/.claude/.credentials.json": ({}, {"home/.claude/.credentials.json": OAUTH}),
    "other/.credentials.json": (
        {"CLAUDE_CONFIG_DIR": "../other"},
        {"other/.credentials.json": OAUTH},
    ),
    "home/.claude.json": ({}, {"home/.claude.json": {"primaryApiKey": "sk-secret"}}),
    "apiKeyHelper is set": ({}, {"work/.claude/settings.json": {"apiKeyHelper": "echo k"}}),
}


@pytest.mark.parametrize("said", LOGGED_IN)
def test_a_login_is_found_and_named_without_its_secret(tmp_path: Path, said: str) -> None:
    variables, files = LOGGED_IN[said]
    env = place(tmp_path, files) | variables
    health = claude_health(ClaudeOptions(), env, str(tmp_path / "work"), platform="linux")
    assert health.state == "ok"
    assert health.detail.endswith(said)
    assert "has a login" in health.detail
    assert "secret" not in health.detail


@pytest.mark.parametrize(
    ("variables", "files"),
    [
        ({}, {}),
        ({"ANTHROPIC_API_KEY": ""}, {}),
        ({"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}, {}),
        ({"CLAUDE_CODE_USE_BEDROCK": "0"}, {}),
        ({}, {"home/.claude/.credentials.json": {}}),
        ({"CLAUDE_CONFIG_DIR": "elsewhere"}, {"home/.claude/.credentials.json": OAUTH}),
    ],
)
def test_a_missing_login_fails_and_says_what_to_do(
    tmp_path: Path, variables: dict[str, str], files: Files
) -> None:
    env = place(tmp_path, files) | variables
    health = claude_health(ClaudeOptions(), env, str(tmp_path / "work"), platform="linux")
    assert health.state == "fail"
    assert health.detail == f"Claude Code is not logged in; {login.LOG_IN}"


@pytest.mark.parametrize(
    ("variables", "files", "platform", "why"),
    [
        ({}, {}, "darwin", "a login may be in the keychain"),
        ({}, {"home/.claude/.credentials.json": "no JSON"}, "linux", "is not a JSON object"),
        ({"ANTHROPIC_CUSTOM_HEADERS": "x: y"}, {}, "linux", "ANTHROPIC_CUSTOM_HEADERS is set"),
        ({"HOME": ""}, {}, "linux", "HOME is not set"),
    ],
)
def test_what_cannot_be_known_is_no_failure(
    tmp_path: Path, variables: dict[str, str], files: Files, platform: str, why: str
) -> None:
    env = place(tmp_path, files) | variables
    health = claude_health(ClaudeOptions(), env, str(tmp_path / "work"), platform=platform)
    assert health.state == "ok"
    assert "its login is unknown: " in health.detail
    assert health.detail.endswith(why)


def test_settings_that_a_run_does_not_read_are_no_login(tmp_path: Path) -> None:
    env = place(tmp_path, {"work/.claude/settings.json": {"apiKeyHelper": "echo k"}})
    options = ClaudeOptions(setting_sources=("user",))
    assert claude_health(options, env, str(tmp_path / "work"), platform="linux").state == "fail"
    options = ClaudeOptions(setting_sources=(), settings='{"apiKeyHelper": "echo k"}')
    assert claude_health(options, env, str(tmp_path / "work"), platform="linux").state == "ok"


def test_a_program_that_is_not_installed_is_left_out_with_how_to_install_it(tmp_path: Path) -> None:
    health = claude_health(ClaudeOptions(), {"PATH": str(tmp_path)}, str(tmp_path))
    assert health.state == "skip"
    assert health.detail.startswith("program 'claude' not found on PATH; install Claude Code")


def test_a_program_that_cannot_be_executed_fails(tmp_path: Path) -> None:
    program(tmp_path).chmod(0o644)
    health = claude_health(ClaudeOptions(), {"PATH": str(tmp_path)}, str(tmp_path))
    assert health.state == "fail"
    assert health.detail.startswith(f"{tmp_path / 'claude'} cannot be executed; ")


def test_the_login_of_another_program_is_unknown(tmp_path: Path) -> None:
    wrapper = program(tmp_path, "wrapper")
    health = claude_health(ClaudeOptions(command=(str(wrapper),)), {}, str(tmp_path))
    assert (health.state, health.detail) == ("ok", f"{wrapper} is there; its login is unknown")
