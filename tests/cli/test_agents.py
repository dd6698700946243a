"""Agents by name (`birds:heron`) and from a registry file, in flags, settings and commands."""

import json
from pathlib import Path

import pytest

from sessionmgr.cli.config.provider_defaults import of_variable, toml_key
from sessionmgr.cli.config.setting_types import SettingValueError
from tests.adapter.birds import install_birds
from tests.cli.command_terminal import CommandTerminal
from tests.cli.test_doctor import looked
from tests.cli.test_trust import own, project, refused, settings


@pytest.fixture(autouse=True)
def birds(terminal: CommandTerminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install an adapter with variants."""
    install_birds(terminal.home, monkeypatch)


@pytest.fixture
def agents(terminal: CommandTerminal) -> Path:
    """A file that adds the agents `dodo` and `auk`, which is not logged in."""
    file = terminal.home / "agents.json"
    file.write_text('["dodo", "auk"]')
    return file


def error(terminal: CommandTerminal, *words: str) -> str:
    """Return the error of a command that cannot begin."""
    code, out, err = terminal(*words)
    assert (code, out) == (1, "")
    return err.removeprefix("sessionmgr: error: ")


def ids(terminal: CommandTerminal) -> list[str]:
    """Return the ids of the sessions in the store."""
    return [json.loads(line)["id"] for line in terminal("sessions", "--json")[1].splitlines()]


# --- runs -----------------------------------------------------------------------------------------


def test_a_run_of_an_agent_is_shown_filtered_resumed_and_priced_by_its_whole_name(
    terminal: CommandTerminal,
) -> None:
    script = '[{"do": "say", "text": "hello"}, {"do": "use", "usd": 0.5}]'
    code, out, _ = terminal("run", "-p", "birds:heron", script)
    assert (code, out) == (0, "hello")
    code, out, _ = terminal("sessions", "--json")
    assert [json.loads(line)["provider"] for line in out.splitlines()] == ["birds:heron"]
    (session,) = ids(terminal)
    code, out, _ = terminal("show", session, "--json")
    shown = json.loads(out.splitlines()[0])
    assert shown["provider"] == "birds:heron"
    assert "birds:heron" in terminal("costs", "--by", "provider")[1]
    code, out, _ = terminal("resume", session, "again")
    assert (code, out) == (0, "again")


def test_an_agent_of_a_file_needs_the_file_each_time(
    terminal: CommandTerminal, agents: Path
) -> None:
    assert error(terminal, "run", "-p", "birds:dodo", "hi") == (
        "unknown provider 'birds:dodo'; known: heron, stork"
    )
    script = '[{"do": "say", "text": "x"}, {"do": "fail", "resumable": true}]'
    code, _, err = terminal("run", "-p", "birds:dodo", script, "--agents", str(agents))
    assert code == 3
    (session,) = ids(terminal)
    assert f" --store {terminal.store} --agents {agents}" in err
    code, _, err = terminal("watch", session)
    assert (code, "to continue: sessionmgr resume" in err) == (3, True)
    assert "unknown provider 'birds:dodo'" in error(terminal, "resume", session, "again")
    assert terminal("resume", session, "again", "--agents", str(agents))[:2] == (0, "again")


def test_a_wrong_name_is_refused_with_a_remedy(terminal: CommandTerminal, agents: Path) -> None:
    assert error(terminal, "run", "-p", "shell:x", "hi") == (
        "unknown provider 'shell:x'; shell has no variants; use 'shell'"
    )
    assert "did you mean 'birds:heron'?" in error(terminal, "run", "-p", "bird:heron", "hi")
    missing = agents.with_name("none.json")
    assert error(terminal, "run", "-p", "birds:heron", "hi", "--agents", str(missing)) == (
        f"agents file {missing}: FileNotFoundError; correct it"
    )
    assert terminal("run", "-p", "shell", "--permission", "full_auto", "printf hi",
                    "--agents", str(missing))[:2] == (0, "hi")  # fmt: skip
    assert error(terminal, "run", "-p", "shell", "hi", "--agents", "") == (
        "--agents: expected a path, got ''"
    )


# --- settings -------------------------------------------------------------------------------------


def test_an_agent_has_defaults_and_options_of_its_own(terminal: CommandTerminal) -> None:
    own(
        terminal,
        'provider.default = "birds:heron"\n[provider."birds:heron"]\nmodel = "grey"\n'
        '[provider."birds:heron@1.0".options]\ncareful = true\n',
    )
    code, out, _ = terminal("run", "hi", "--print-config")
    path = terminal.home / "config/sessionmgr/sessionmgr.toml"
    assert f'provider."birds:heron".model = "grey"  # {path}:3' in out
    assert f'options = {{ "birds:heron@1.0": {{ "careful": true }} }}  # {path}:5' not in out
    assert '"birds:heron@1.0"' in out
    code, out, _ = terminal("run", "hi", "--json")
    started = [json.loads(line) for line in out.splitlines()]
    assert (code, started[0]["type"]) == (0, "run_started")
    assert "it supports: plan" in error(terminal, "run", "-p", "birds:heron@1.0", "hi")


@pytest.mark.parametrize(
    "words",
    [
        ("--set", "birds:heron.model=grey"),
        ("--set", "birds:heron@1.0.model=grey"),
        ("--set", "birds:heron.options.careful=true"),
        ("--set", "birds:heron@1.0.options.careful=true"),
    ],
)
def test_a_flag_sets_a_default_of_an_agent(terminal: CommandTerminal, words: list[str]) -> None:
    code, out, err = terminal("run", "-p", "birds:heron", "hi", *words, "--print-config")
    assert (code, err) == (0, "")
    assert words[1].partition("=")[0].rpartition(".")[2] in out


def test_a_batch_limits_the_jobs_of_an_agent(terminal: CommandTerminal, agents: Path) -> None:
    jobs = terminal.home / "jobs.jsonl"
    lines = [
        {"id": "a", "provider": "birds:heron", "prompt": "one"},
        {"id": "b", "provider": "birds:dodo", "prompt": "two"},
        {"id": "c", "prompt": "three"},
    ]
    jobs.write_text("\n".join(map(json.dumps, lines)))
    words = ("batch", "jobs.jsonl", "-p", "birds:heron@1.0", "-n", "birds:heron=8", "-n", "2")
    code, out, err = terminal(*words, "--out", "out")
    assert code == 1
    assert "unknown provider 'birds:dodo'" in err
    flags = ("--agents", str(agents), "--set", "birds:dodo.model=grey")
    code, out, err = terminal(*words, *flags, "--dry-run", "--json")
    assert [json.loads(line)["provider"] for line in out.splitlines()[:3]] == [
        *("birds:heron", "birds:dodo", "birds:heron@1.0")
    ]
    code, out, err = terminal(*words, *flags, "--out", "out")
    assert code == 0, err
    results = (terminal.home / "out" / "results.jsonl").read_text().splitlines()
    done = {each["job"]: each for each in map(json.loads, results)}
    assert done["a"]["provider"] == "birds:heron"
    assert done["b"]["provider"] == "birds:dodo"


def test_an_agent_that_settings_name_must_exist(terminal: CommandTerminal, agents: Path) -> None:
    own(terminal, '[provider."birds:dodo"]\nmodel = "grey"\n')
    path = terminal.home / "config/sessionmgr/sessionmgr.toml"
    why = "unknown provider 'birds:dodo'; known: heron, stork"
    assert error(terminal, "sessions") == f"{path}:2: {why}"
    assert terminal("--print-config", "--agents", str(agents))[0] == 0
    own(terminal, f'agents = "{agents}"\n[provider."birds:dodo"]\nmodel = "grey"\n')
    assert settings(terminal)["agents"] == str(agents)
    own(terminal, "")
    jobs = ("batch", "jobs.jsonl", "--print-config")
    assert error(terminal, *jobs, "-n", "birds:dodo=2") == f"--concurrency: {why}"
    assert error(terminal, *jobs, "--set", "birds:dodo.model=x") == f"--set: {why}"
    assert "known: " in error(terminal, *jobs, "-n", "cats:tom=2")
    # A command that needs no agent works without the file.
    assert terminal(*jobs, "-n", "birds:dodo=2", "--agents", "none.json")[0] == 0


def test_a_variable_names_the_file_and_the_defaults_of_an_agent(
    terminal: CommandTerminal, agents: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SESSIONMGR_PROVIDER_BIRDS_DODO_MODEL", "grey")
    assert "SESSIONMGR_PROVIDER_BIRDS_DODO_MODEL: " in error(terminal, "--print-config")
    assert terminal("--print-config", "--agents", str(agents))[0] == 0
    monkeypatch.setenv("SESSIONMGR_AGENTS_FILE", str(agents))
    assert settings(terminal)["provider.birds:dodo.model"] == "grey"
    assert settings(terminal)["agents"] == str(agents)
    monkeypatch.setenv("SESSIONMGR_AGENTS", "/a/cache")  # not ours
    assert settings(terminal)["agents"] == str(agents)
    assert of_variable("SESSIONMGR_PROVIDER_BIRDS_HERON_MODEL", "x").provider == "birds:heron"
    assert of_variable("SESSIONMGR_PROVIDER_BIRDS_MODEL", "x").provider == "birds"
    with pytest.raises(SettingValueError, match=r"none\.json: FileNotFoundError"):
        of_variable("SESSIONMGR_PROVIDER_BIRDS_DODO_MODEL", "x", agents.with_name("none.json"))


def test_a_key_is_quoted_where_toml_needs_it() -> None:
    assert toml_key("provider", "acp:goose@1.50.0", "model") == 'provider."acp:goose@1.50.0".model'
    assert toml_key("clocks", "idle") == "clocks.idle"


# --- trust ----------------------------------------------------------------------------------------


def test_a_projects_file_of_agents_is_refused_until_it_is_trusted_and_whenever_it_changes(
    terminal: CommandTerminal, agents: Path
) -> None:
    project(terminal, 'agents = "agents.json"\n')
    assert refused(terminal) == ["agents"]
    assert settings(terminal)["agents"] is None
    assert "unknown provider" in terminal("run", "-p", "birds:dodo", "hi")[2]
    assert terminal.bare("trust", ".")[0] == 0
    assert settings(terminal)["agents"] == str(agents)
    assert terminal("run", "-p", "birds:dodo", "hi")[1] == "hi"
    agents.write_text('["dodo"]')
    assert refused(terminal) == ["agents"]


def test_a_trusted_file_of_agents_outside_of_the_project_may_not_change_either(
    terminal: CommandTerminal, tmp_path_factory: pytest.TempPathFactory
) -> None:
    agents = tmp_path_factory.mktemp("elsewhere") / "agents.json"
    agents.write_text('["dodo"]')
    project(terminal, f'agents = "{agents}"\n')
    assert terminal.bare("trust", ".")[0] == 0
    assert settings(terminal)["agents"] == str(agents)
    agents.write_text("[]")
    assert refused(terminal) == ["agents"]


def test_a_program_of_the_project_that_the_file_names_may_not_change_either(
    terminal: CommandTerminal, agents: Path
) -> None:
    program = terminal.home / "bird.sh"
    program.write_text("echo one")
    agents.write_text(json.dumps({"agents": [{"cmd": str(program), "args": ["-c ./other.sh"]}]}))
    project(terminal, 'agents = "agents.json"\n')
    assert terminal.bare("trust", ".")[0] == 0
    assert refused(terminal) == []
    for name in ("bird.sh", "other.sh"):
        (terminal.home / name).write_text("echo two")
        assert refused(terminal) == ["agents"]
        assert terminal.bare("trust", ".")[0] == 0


# --- what there is --------------------------------------------------------------------------------


def test_adapters_lists_the_agents_and_what_one_can_do(
    terminal: CommandTerminal, agents: Path
) -> None:
    code, out, _ = terminal("adapters", "birds", "--agents", str(agents))
    assert code == 0
    said = "agents birds:dodo, birds:heron; not ready: birds:auk; not installed: birds:stork"
    assert said in " ".join(out.split())
    code, out, _ = terminal("adapters", "birds", "--json")
    assert json.loads(out)["agents"] == {"birds:heron": "ok", "birds:stork": "skip"}
    code, out, _ = terminal("adapters", "birds:heron", "shell")
    assert out.startswith("birds:heron  Heron  (birds 1.0)\n")
    assert "permission   plan: exact (plan)" in out
    own(terminal, 'options."birds:heron".careful = true\n')
    code, out, _ = terminal("adapters", "birds:heron")
    assert "refused      default, accept_edits, full_auto, dangerously_skip_permissions" in out
    assert error(terminal, "adapters", "birds:auk") == (
        "unknown provider 'birds:auk'; known: heron, stork"
    )
    assert "FileNotFoundError" in error(terminal, "adapters", "birds", "--agents", "none.json")


def test_an_agent_whose_check_fails_is_not_ready(terminal: CommandTerminal, agents: Path) -> None:
    agents.write_text('["ouzel"]')
    code, out, _ = terminal("adapters", "birds", "--agents", str(agents), "--json")
    assert (code, json.loads(out)["agents"]["birds:ouzel"]) == (0, "fail")
    code, told = looked(terminal, "birds:ouzel", "--agents", str(agents))
    assert (code, told["birds:ouzel"]["detail"]) == (3, "its check failed: OSError: no nest")


def test_doctor_checks_each_agent_and_counts_the_missing_ones_as_one(
    terminal: CommandTerminal, agents: Path
) -> None:
    code, told = looked(terminal, "providers", "--agents", str(agents))
    assert told["birds:heron"]["state"] == "ok"
    assert told["birds:heron"]["detail"] == "Heron is ready"
    assert told["birds"] == {
        "name": "birds",
        "state": "skip",
        "detail": "not installed: birds:stork",
        "next": "install one of them, then: sessionmgr doctor birds:stork",
    }
    assert (told["birds:auk"]["state"], told["birds:auk"]["next"]) == ("fail", "run: bird login")
    assert "birds:stork" not in told
    assert code == 3
    code, told = looked(terminal, "birds")
    assert (code, [*told]) == (0, ["birds:heron", "birds:stork"])
    code, told = looked(terminal, "birds:stork")
    assert told["birds:stork"]["next"] == "install it"
    assert error(terminal, "doctor", "birds:auk").startswith("unknown provider 'birds:auk'")


def test_doctor_reports_agents_that_the_settings_name_and_a_broken_file(
    terminal: CommandTerminal,
) -> None:
    own(terminal, 'provider = "birds:stork"\n')
    code, told = looked(terminal, "providers")
    assert (code, told["birds:stork"]["state"]) == (3, "fail")
    assert told["birds:stork"]["detail"].startswith("not found; provider (")
    own(terminal, 'provider = "birds:auk"\n')
    code, told = looked(terminal, "settings")
    assert "unknown provider 'birds:auk'; known: heron, stork" in told["provider"]["detail"]
    own(terminal, 'provider = "birds:heron"\nagents = "none.json"\n')
    code, told = looked(terminal, "birds")
    assert (code, told["birds"]["state"]) == (3, "fail")
    assert told["birds"]["detail"].endswith("none.json: FileNotFoundError")
    assert told["birds"]["next"] == "correct it"


def test_schema_describes_the_options_and_results_of_an_agent(
    terminal: CommandTerminal, agents: Path
) -> None:
    code, out, _ = terminal("schema", "options", "birds:heron")
    assert (code, json.loads(out)["title"]) == (0, "Options of birds:heron")
    code, out, _ = terminal("schema", "output", "birds:dodo", "--agents", str(agents))
    schema = json.loads(out)
    assert schema["$defs"]["RunResult"]["properties"]["provider"]["const"] == "birds:dodo"
    assert "unknown provider 'birds:dodo'" in error(terminal, "schema", "output", "birds:dodo")
