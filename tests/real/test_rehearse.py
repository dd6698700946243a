"""`sessionmgr rehearse` with the real Claude Code and the real Codex."""

import json
import os
from pathlib import Path

import pytest

from sessionmgr.testing.model_server import ModelCall, ModelRefuse, ModelSay, prompt_with
from tests.cli.command import environment, run_command
from tests.real.agent_programs import CODEX, program_of


@pytest.fixture
def env(claude_program: tuple[str, Path], tmp_path: Path) -> dict[str, str]:
    path = os.pathsep.join([str(claude_program[1].parent), os.environ["PATH"]])
    elsewhere = "http://127.0.0.1:9"
    return environment(tmp_path, PATH=path, ANTHROPIC_BASE_URL=elsewhere, HTTPS_PROXY=elsewhere)


@pytest.fixture
def newest_codex() -> Path:
    return program_of("codex", CODEX[0])


def test_a_batch_is_rehearsed_whatever_the_jobs_say_of_the_model(
    env: dict[str, str], tmp_path: Path
) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    shell = ModelCall(tool="shell", input={"command": "echo seen"})
    here = tmp_path / "here"
    (here / ".claude").mkdir(parents=True)
    # A project's settings may name the model's address too.
    settings = {"env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}}
    (here / ".claude" / "settings.json").write_text(json.dumps(settings))
    jobs: list[dict[str, object]] = [
        {"id": "echo", "prompt": "hi", "options": {"billing": "subscription"}},
        {"id": "schema", "prompt": "how many?", "schema": schema},
        {"id": "tool", "prompt": prompt_with([(shell,), (ModelSay(text="Seen."),)])},
        {"id": "elsewhere", "prompt": "hi", "env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}},
    ]
    file = tmp_path / "jobs.jsonl"
    file.write_text("".join(f"{json.dumps({**job, 'provider': 'claude'})}\n" for job in jobs))
    ran = run_command("rehearse", str(file), "--json", env=env, cwd=here)
    assert (ran.returncode, "warning: agents" in ran.stderr) == (0, False), ran.stderr
    results = {each["job"]: each for each in map(json.loads, ran.stdout.splitlines())}
    assert {each["status"] for each in results.values()} == {"completed"}
    assert results["echo"]["text"] == results["elsewhere"]["text"] == "You said: hi"
    assert results["schema"]["structured"] == {"n": 0}
    assert results["tool"]["tool_calls"]["count"] == {"Bash": 1}
    assert "the scripted model answered 5 requests" in ran.stderr
    assert sorted(each.name for each in here.iterdir()) == [".claude"]


def test_a_rehearsal_that_fails_says_so(env: dict[str, str], tmp_path: Path) -> None:
    refused = prompt_with([[ModelRefuse(status=400, message="not this")]])
    file = tmp_path / "jobs.jsonl"
    file.write_text(json.dumps({"id": "a", "provider": "claude", "prompt": refused}))
    ran = run_command("rehearse", str(file), env=env, cwd=tmp_path)
    assert ran.returncode == 3
    assert "not this" in ran.stderr


def test_a_batch_of_codex_is_rehearsed_whatever_its_configuration_says(
    newest_codex: Path, tmp_path: Path
) -> None:
    path = os.pathsep.join([str(newest_codex.parent), os.environ["PATH"]])
    elsewhere = "http://127.0.0.1:9"
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text(f'openai_base_url = "{elsewhere}"\n')
    env = environment(tmp_path, PATH=path, CODEX_HOME=str(home), OPENAI_BASE_URL=elsewhere)
    shell = ModelCall(tool="shell", input={"command": "echo seen"})
    config = {"openai_base_url": elsewhere, "model_provider": "openai"}
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    jobs: list[dict[str, object]] = [
        {"id": "echo", "prompt": "hi", "env": {"OPENAI_API_KEY": "sk-mine"}},
        {"id": "config", "prompt": "hi", "options": {"config": config}},
        {"id": "tool", "prompt": prompt_with([(shell,), (ModelSay(text="Seen."),)])},
        {"id": "exec", "prompt": "hi", "options": {"exec": True}},
        {"id": "schema", "prompt": "n?", "schema": {**schema, "additionalProperties": False}},
    ]
    file = tmp_path / "jobs.jsonl"
    file.write_text("".join(f"{json.dumps({**job, 'provider': 'codex'})}\n" for job in jobs))
    ran = run_command("rehearse", str(file), "--json", env=env, cwd=tmp_path)
    assert (ran.returncode, "warning: agents" in ran.stderr) == (0, False), ran.stderr
    results = {each["job"]: each for each in map(json.loads, ran.stdout.splitlines())}
    assert {each["status"] for each in results.values()} == {"completed"}
    assert results["echo"]["text"] == results["config"]["text"] == "You said: hi"
    assert results["exec"]["text"] == "You said: hi"
    assert results["tool"]["tool_calls"]["count"] == {"shell": 1}
    assert results["schema"]["structured"] == {"n": 0}
    assert [each.name for each in home.iterdir()] == ["config.toml"]
