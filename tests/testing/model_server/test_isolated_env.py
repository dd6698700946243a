import tomllib
from pathlib import Path

from sessionmgr.testing.model_server.isolated_env import IsolatedEnvironment

URL = "http://127.0.0.1:1"


def test_nothing_is_inherited_and_the_server_is_the_proxy(tmp_path: Path) -> None:
    hermitage = IsolatedEnvironment(tmp_path, URL, path="/bin")
    for environment in (hermitage.claude(), hermitage.codex()):
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
