"""Our answer about Codex's login agrees with its requests to the model."""

import os
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import trio

from sessionmgr.testing.model_server import ModelServer, open_model_server
from sessionmgr_adapters.codex import CodexOptions
from sessionmgr_adapters.codex.login import codex_health
from tests.real.agent_programs import CODEX, program_of
from tests.real.harness import PATIENCE

KEY = '{"OPENAI_API_KEY": "sk-in-a-file"}'


@pytest.fixture
def newest() -> Path:
    return program_of("codex", CODEX[0])


@pytest.fixture
async def talkative() -> AsyncGenerator[ModelServer]:
    """Serve a model; with OpenAI's own settings Codex also asks for models that do not exist."""
    async with open_model_server() as server:
        yield server


@pytest.mark.parametrize(
    ("variables", "auth", "by_exec", "by_server"),
    [
        ({"OPENAI_API_KEY": "sk-in-env"}, None, False, False),
        ({"CODEX_API_KEY": "sk-in-env"}, None, True, False),
        ({}, KEY, True, True),
    ],
)
async def test_what_is_said_of_a_login_is_what_codex_exec_uses(
    newest: Path,
    talkative: ModelServer,
    tmp_path: Path,
    variables: dict[str, str],
    auth: str | None,
    by_exec: bool,
    by_server: bool,
) -> None:
    home, work = tmp_path / "codex", tmp_path / "work"
    for directory in (home, work, tmp_path / "tmp"):
        directory.mkdir()
    (home / "config.toml").write_text(
        f'model = "gpt-5.5"\nopenai_base_url = "{talkative.url}/v1"\n'
        "[features]\nplugins = false\napps = false\nunbounded_connection_retries = false\n"
    )
    if auth is not None:
        (home / "auth.json").write_text(auth)
    proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), talkative.url)
    env = {
        "HOME": str(tmp_path),
        "CODEX_HOME": str(home),
        "TMPDIR": str(tmp_path / "tmp"),
        "PATH": os.defpath,
        "NO_PROXY": "127.0.0.1",
        **proxies,
        **variables,
    }
    command = [str(newest), "exec", "--skip-git-repo-check", "hi"]
    with trio.fail_after(PATIENCE):
        await trio.run_process(command, cwd=work, env=env, check=False, capture_stdout=True)
    asked = [each for each in talkative.log if each.asked is not None]
    keys = {each.http.headers.get("authorization") for each in asked}
    assert asked
    assert any(keys) is by_exec
    (home / "config.toml").write_text('model = "gpt-5.5"\n')
    for options, has_login in (
        (CodexOptions(command=(str(newest),), exec=True), by_exec),
        (CodexOptions(command=(str(newest),)), by_server),
    ):
        assert codex_health(options, env, str(work)).state == ("ok" if has_login else "fail")
