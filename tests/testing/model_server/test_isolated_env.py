import tomllib
from pathlib import Path

import msgspec

from sessionmgr.testing.model_server.isolated_env import IsolatedEnvironment

URL = "http://127.0.0.1:1"
ENVIRONMENTS = (
    IsolatedEnvironment.claude,
    IsolatedEnvironment.codex,
    IsolatedEnvironment.claude_agent_acp,
    IsolatedEnvironment.codex_acp,
    IsolatedEnvironment.gemini,
    IsolatedEnvironment.opencode,
    IsolatedEnvironment.goose,
    IsolatedEnvironment.kimi_code,
    IsolatedEnvironment.kimi_cli,
    IsolatedEnvironment.copilot,
)


def test_nothing_is_inherited_and_the_server_is_the_proxy(tmp_path: Path) -> None:
    hermitage = IsolatedEnvironment(tmp_path, URL, path="/bin")
    for environment in (each(hermitage) for each in ENVIRONMENTS):
        assert environment["PATH"] == "/bin"
        assert environment["HTTPS_PROXY"] == environment["all_proxy"] == URL
        for name in ("HOME", "TMPDIR"):
            assert Path(environment[name]).is_dir()
            assert Path(environment[name]).is_relative_to(tmp_path)
    assert hermitage.work.is_dir()


def test_claude_is_told_where_its_model_is(tmp_path: Path) -> None:
    environment = IsolatedEnvironment(tmp_path, URL).claude(retries=3)
    assert environment["ANTHROPIC_BASE_URL"] == URL
    assert environment["CLAUDE_CODE_MAX_RETRIES"] == "3"
    assert Path(environment["CLAUDE_CONFIG_DIR"]).is_dir()


def test_codex_reads_settings_that_point_to_the_model(tmp_path: Path) -> None:
    environment = IsolatedEnvironment(tmp_path, URL).codex(
        retries=2, model="m", more="[tui]\nx = 1\n"
    )
    settings = tomllib.loads((Path(environment["CODEX_HOME"]) / "config.toml").read_text())
    provider = settings["model_providers"]["scripted"]
    assert (provider["base_url"], provider["stream_max_retries"]) == (f"{URL}/v1", 2)
    assert environment[provider["env_key"]]
    assert (settings["model"], settings["tui"]) == ("m", {"x": 1})
    # Codex refuses to make helpers in a home below TMPDIR.
    assert not Path(environment["CODEX_HOME"]).is_relative_to(environment["TMPDIR"])


def test_gemini_logs_in_with_a_key_and_has_a_model(tmp_path: Path) -> None:
    environment = IsolatedEnvironment(tmp_path, URL).gemini()
    file = Path(environment["GEMINI_CLI_HOME"]) / ".gemini" / "settings.json"
    settings = msgspec.json.decode(file.read_bytes())
    assert environment["GOOGLE_GEMINI_BASE_URL"] == URL
    assert settings["security"]["auth"] == {"selectedType": "gemini-api-key"}
    assert settings["model"]["name"].startswith("gemini-")


def test_opencode_asks_unless_its_own_permissions_are_wanted(tmp_path: Path) -> None:
    hermitage = IsolatedEnvironment(tmp_path, URL)
    environment = hermitage.opencode()
    config = msgspec.json.decode(environment["OPENCODE_CONFIG_CONTENT"])
    assert config["permission"] == {"edit": "ask", "bash": "ask", "webfetch": "ask"}
    assert config["provider"]["scripted"]["options"]["baseURL"] == f"{URL}/v1"
    its_own = hermitage.opencode(permission=None)["OPENCODE_CONFIG_CONTENT"]
    assert "permission" not in msgspec.json.decode(its_own)
    # Where these are, it does not fetch a package of its own at each start.
    settings = Path(environment["XDG_CONFIG_HOME"]) / "opencode"
    assert (settings / "node_modules").is_dir()
    assert (settings / "package-lock.json").is_file()


def test_goose_has_a_mode_only_if_one_is_wanted(tmp_path: Path) -> None:
    hermitage = IsolatedEnvironment(tmp_path, URL)
    assert "GOOSE_MODE" not in hermitage.goose()
    environment = hermitage.goose(mode="approve")
    assert (environment["GOOSE_MODE"], environment["OPENAI_HOST"]) == ("approve", URL)


def test_both_kimis_are_told_where_their_model_is(tmp_path: Path) -> None:
    hermitage = IsolatedEnvironment(tmp_path, URL)
    assert hermitage.kimi_code()["KIMI_MODEL_BASE_URL"] == f"{URL}/v1"
    share = Path(hermitage.kimi_cli()["KIMI_SHARE_DIR"])
    settings = tomllib.loads((share / "config.toml").read_text())
    model = settings["models"][settings["default_model"]]
    assert settings["providers"][model["provider"]]["base_url"] == f"{URL}/v1"
    assert (share / "credentials" / "kimi-code.json").is_file()


def test_copilot_needs_no_login(tmp_path: Path) -> None:
    environment = IsolatedEnvironment(tmp_path, URL).copilot()
    assert environment["COPILOT_PROVIDER_BASE_URL"] == f"{URL}/v1"
    assert environment["COPILOT_OFFLINE"] == "true"
