from pathlib import Path

from sessionmgr.batch import Job
from sessionmgr.model import Json
from sessionmgr.testing.model_server.isolated_env import IsolatedEnvironment
from sessionmgr.testing.rehearsal import (
    agent_environment,
    refused_hosts_message,
    rehearsed_job,
    unrehearsable_jobs,
)


def test_what_a_job_says_about_its_model_is_left_aside() -> None:
    job = Job(
        id="a",
        provider="claude",
        prompt="hi",
        env={
            "ANTHROPIC_BASE_URL": "x",
            "https_proxy": "x",
            "CLAUDE_CODE_USE_BEDROCK": "1",
            "A": "b",
        },
        options={"home": "/x", "billing": "api", "settings": "s", "keep": False},
    )
    played = rehearsed_job(job)
    assert played.env == {"A": "b"}
    assert played.options == {"keep": False, "setting_sources": ["user"]}
    assert (played.id, played.prompt) == ("a", "hi")
    bare = rehearsed_job(Job(id="a", provider="claude"))
    assert (bare.env, bare.options) == ({}, {"setting_sources": ["user"]})


def test_the_configuration_of_a_codex_is_left_aside() -> None:
    options: dict[str, Json] = {"config": {"model_provider": "x"}, "home": "/x", "network": True}
    env = {"OPENAI_API_KEY": "x", "CODEX_HOME": "/x", "A": "b"}
    played = rehearsed_job(Job(id="a", provider="codex", env=env, options=options))
    assert (played.env, played.options) == ({"A": "b"}, {"network": True})


def test_a_provider_whose_model_nobody_plays_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "jobs.jsonl"
    file.write_text(
        '{"id": "a", "provider": "claude"}\n'
        "nonsense\n"
        '{"id": "b", "provider": "shell"}\n'
        '{"id": "c"}\n'
    )
    [problem] = unrehearsable_jobs(file, None)
    assert str(problem) == (
        f"{file}:3: provider: shell cannot be rehearsed; providers that can: claude, codex"
    )
    by_default = Job(id="-", provider="shell")
    assert len(list(unrehearsable_jobs(file, by_default))) == 2


def test_the_environment_is_the_rehearsals_own(tmp_path: Path) -> None:
    environment = agent_environment(
        IsolatedEnvironment(tmp_path, "http://127.0.0.1:1", path="/bin")
    )
    assert environment["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:1"
    assert environment["HOME"] == str(tmp_path / "home")
    assert environment["CODEX_HOME"] == str(tmp_path / "codex")
    assert "http://127.0.0.1:1/v1" in (tmp_path / "codex" / "config.toml").read_text()


def test_whoever_else_was_wanted_is_named() -> None:
    assert refused_hosts_message([]) is None
    said = refused_hosts_message(["CONNECT a:443", "CONNECT a:443"])
    assert said is not None
    assert said.endswith("other hosts: CONNECT a:443")
