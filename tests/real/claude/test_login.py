"""Our answer about Claude Code's login agrees with `claude auth status`."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from sessionmgr_adapters.claude import ClaudeOptions
from sessionmgr_adapters.claude.login import claude_health
from tests.adapters.claude.test_login import OAUTH, Files

CASES: dict[str, tuple[dict[str, str], Files, bool]] = {
    "nothing": ({}, {}, False),
    "a key": ({"ANTHROPIC_API_KEY": "sk-any"}, {}, True),
    "an empty key": ({"ANTHROPIC_API_KEY": ""}, {}, False),
    "a token": ({"ANTHROPIC_AUTH_TOKEN": "any"}, {}, True),
    "an OAuth token": ({"CLAUDE_CODE_OAUTH_TOKEN": "any"}, {}, True),
    "an address": ({"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}, {}, False),
    "Bedrock": ({"CLAUDE_CODE_USE_BEDROCK": "1"}, {}, True),
    "no Bedrock": ({"CLAUDE_CODE_USE_BEDROCK": "0"}, {}, False),
    "Vertex": ({"CLAUDE_CODE_USE_VERTEX": "1"}, {}, True),
    "Foundry": ({"CLAUDE_CODE_USE_FOUNDRY": "1"}, {}, True),
    "a login": ({}, {"home/.claude/.credentials.json": OAUTH}, True),
    "an empty login": ({}, {"home/.claude/.credentials.json": {}}, False),
    "a managed key": ({}, {"home/.claude.json": {"primaryApiKey": "sk-any"}}, True),
    "a helper": ({}, {"home/.claude/settings.json": {"apiKeyHelper": "echo k"}}, True),
    "a key in settings": (
        {},
        {"home/.claude/settings.json": {"env": {"ANTHROPIC_API_KEY": "k"}}},
        True,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_said_of_a_login_is_what_the_agent_says(
    newest: Path, tmp_path: Path, case: str
) -> None:
    variables, files, is_logged_in = CASES[case]
    for name, content in files.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(content))
    (tmp_path / "home").mkdir(exist_ok=True)
    env = {"HOME": str(tmp_path / "home"), "PATH": os.defpath, **variables}
    nowhere = {"HTTPS_PROXY": "http://127.0.0.1:9"}
    ran = subprocess.run(
        [newest, "auth", "status"],
        cwd=tmp_path,
        env=env | nowhere,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert json.loads(ran.stdout)["loggedIn"] is is_logged_in
    options = ClaudeOptions(command=(str(newest),))
    health = claude_health(options, env, str(tmp_path))
    assert health.state == ("ok" if is_logged_in else "fail"), health.detail
    assert is_logged_in == ("has a login" in health.detail)
