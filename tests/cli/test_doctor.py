"""`adapters` lists the installed providers, and `doctor` checks them."""

import json
import resource
import sys
from pathlib import Path

import pytest

from sessionmgr.adapter import ProviderAdapter
from sessionmgr.adapter.health import Health
from sessionmgr.cli import checks, provider_checks
from sessionmgr.model import CAPABILITIES, PermissionMode
from sessionmgr.testing.scripted_provider import Hang, Say
from tests.cli.command_terminal import CommandTerminal
from tests.cli.stored_runs import open_run_owner, store_runs
from tests.manager.harness import run_scripted


def looked(terminal: CommandTerminal, *names: str) -> tuple[int, dict[str, dict[str, str]]]:
    code, out, _ = terminal("doctor", *names, "--json")
    told = [json.loads(line) for line in out.splitlines()]
    return code, {each["name"]: each for each in told}


def test_all_is_well_with_a_store_of_ones_own(terminal: CommandTerminal) -> None:
    store_runs(terminal.store, run_scripted(Say(text="x")))
    terminal.store.chmod(0o600)
    code, told = looked(terminal, "versions", "settings", "store", "processes", "limits", "shell")
    assert {"python", "packages", "store", "disk", "processes", "limits", "shell"} <= told.keys()
    assert [each for each in told.values() if each["state"] == "fail"] == []
    assert code == 0
    assert "schema 1" in told["store"]["detail"]


def test_settings_of_a_project_that_are_not_taken_are_reported(terminal: CommandTerminal) -> None:
    (terminal.home / "sessionmgr.toml").write_text('approve = "x"\noptions.shell.shell = true\n')
    code, told = looked(terminal, "settings")
    assert (code, told["settings"]["state"]) == (0, "skip")
    assert "refused from the project: approve, options.shell.shell" in told["settings"]["detail"]
    assert told["settings"]["next"].endswith(f"sessionmgr trust {terminal.home}")


def test_each_line_says_how_it_is_and_what_to_do(
    terminal: CommandTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    store_runs(terminal.store, run_scripted(Say(text="x")))
    terminal.store.chmod(0o640)
    code, out, err = terminal("doctor", "store")
    assert (code, err) == (3, "")
    assert out.splitlines()[1].startswith("fail  store privacy")
    assert out.splitlines()[2].endswith(f"next: chmod 600 {terminal.store}")


def test_a_store_that_is_none_fails(terminal: CommandTerminal) -> None:
    terminal.store.write_text("something else")
    code, told = looked(terminal, "store")
    assert code == 3
    assert "is not a session store" in told["store"]["detail"]
    assert "choose another file" in told["store"]["next"]


def test_a_store_that_is_not_there_yet_is_well_and_none_is_made(terminal: CommandTerminal) -> None:
    code, told = looked(terminal, "store")
    assert code == 0
    assert "the first run creates it" in told["store"]["detail"]
    assert not terminal.store.exists()


def test_a_place_where_no_store_can_be_fails(terminal: CommandTerminal) -> None:
    (terminal.home / "file").touch()
    terminal.store = terminal.home / "file" / "x.db"
    code, told = looked(terminal, "store")
    assert (code, told["store"]["state"]) == (3, "fail")


def test_runs_whose_program_is_gone_are_counted(terminal: CommandTerminal, tmp_path: Path) -> None:
    with open_run_owner(tmp_path, Hang()) as owner:
        _, told = looked(terminal, "store")
        assert "1 run is active" in told["store"]["detail"]
        owner.process.kill()
        owner.process.wait()
        _, told = looked(terminal, "store")
        assert "0 runs are active, 1 is orphaned" in told["store"]["detail"]


def test_few_open_files_and_little_space_fail(
    terminal: CommandTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "FEW_FILES", resource.RLIM_INFINITY & (1 << 62))
    monkeypatch.setattr(checks, "LITTLE_SPACE", 1 << 62)
    code, told = looked(terminal, "limits", "store")
    assert code == 3
    assert told["limits"]["next"].startswith("ulimit")
    assert told["disk"]["state"] == "fail"


class Ill(ProviderAdapter):
    name = "ill"
    said = Health()

    async def health(self) -> Health:
        if self.said.detail == "raise":
            raise OSError("no such thing")
        return self.said


@pytest.mark.parametrize(
    ("health", "state", "next_"),
    [
        (Health(state="fail", detail="not logged in; run: ill login"), "fail", "run: ill login"),
        (
            Health(state="skip", detail="not installed"),
            "skip",
            "set it up, then check again: sessionmgr doctor shell",
        ),
        (Health(detail="raise"), "fail", "report this to the maintainer of the adapter"),
        (Health(), "ok", ""),
    ],
)
def test_a_provider_says_how_it_is(
    terminal: CommandTerminal,
    monkeypatch: pytest.MonkeyPatch,
    health: Health,
    state: str,
    next_: str,
) -> None:
    monkeypatch.setattr(Ill, "said", health)

    def find(name: str, *, agents: Path | None) -> type[ProviderAdapter]:
        assert (name, agents) == ("shell", None)
        return Ill

    monkeypatch.setattr(provider_checks, "find_adapter", find)
    code, told = looked(terminal, "shell")
    assert told["shell"]["state"] == state
    assert told["shell"]["next"] == next_
    assert code == (3 if state == "fail" else 0)


def test_an_adapter_is_listed_with_all_that_it_can(terminal: CommandTerminal) -> None:
    code, out, err = terminal("adapters", "--json")
    assert (code, err) == (0, "")
    (shell,) = [each for each in map(json.loads, out.splitlines()) if each["name"] == "shell"]
    assert shell["version"]
    assert set(shell["capabilities"]) == set(CAPABILITIES)
    assert shell["capabilities"]["streaming"] == "native"
    assert set(shell["permissions"]) == set(PermissionMode)
    assert shell["permissions"]["plan"]["fidelity"] == "refused"
    assert shell["permissions"]["full_auto"]["confined"] is False
    assert "timeout" in shell["options"]
    code, out, _ = terminal("adapters", "shell")
    assert out.startswith("shell  Shell command  (sessionmgr ")
    assert "permission   full_auto: exact (any-command, not confined)" in out


def test_an_adapter_that_cannot_be_loaded_is_listed_as_broken(
    terminal: CommandTerminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = tmp_path / "broken-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Name: broken\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[sessionmgr.adapters]\nbroken = nowhere_at_all:X\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    code, out, _ = terminal("adapters", "broken")
    assert code == 0
    assert "broken 1.0" in out
    assert "No module named 'nowhere_at_all'" in " ".join(out.split())
    code, told = looked(terminal, "broken")
    assert (code, told["broken"]["next"]) == (3, "reinstall its package")


def agent(terminal: CommandTerminal, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the program of one agent, and of no other; no test may start it."""
    program = terminal.home / "bin" / name
    program.parent.mkdir(exist_ok=True)
    program.write_text("#!/bin/sh\ntouch started\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))


@pytest.mark.parametrize(
    ("name", "remedy"),
    [("claude", "run `claude` and log in with /login"), ("codex", "run `codex login`")],
)
def test_an_agent_without_a_login_fails_and_is_not_started(
    terminal: CommandTerminal, monkeypatch: pytest.MonkeyPatch, name: str, remedy: str
) -> None:
    for variable in ("ANTHROPIC_API_KEY", "CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(variable, raising=False)
    agent(terminal, name, monkeypatch)
    code, told = looked(terminal, name)
    assert (code, told[name]["state"]) == (3, "fail")
    assert told[name]["detail"].endswith("is not logged in")
    assert told[name]["next"].startswith(remedy)
    assert not (terminal.home / "started").exists()


def test_an_agent_with_a_login_is_well_and_which_login_is_named(
    terminal: CommandTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent(terminal, "claude", monkeypatch)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-secret")
    code, told = looked(terminal, "claude")
    assert (code, told["claude"]["state"]) == (0, "ok")
    assert told["claude"]["detail"].endswith("has a login: ANTHROPIC_API_KEY is set")


@pytest.mark.parametrize(
    ("settings", "code", "state"),
    [
        ("", 0, "skip"),
        ('provider = "claude"', 3, "fail"),
        ("[options.claude]\nkeep = false", 3, "fail"),
        ("[per_provider]\nclaude = 2", 3, "fail"),
        ('provider = "shell"', 0, "skip"),
    ],
)
def test_an_agent_that_is_not_installed_fails_where_settings_name_it(
    terminal: CommandTerminal, monkeypatch: pytest.MonkeyPatch, settings: str, code: int, state: str
) -> None:
    monkeypatch.setenv("PATH", str(terminal.home))
    config = terminal.home / "config" / "sessionmgr" / "sessionmgr.toml"
    config.parent.mkdir(parents=True)
    config.write_text(settings)
    found, told = looked(terminal, "claude")
    assert (found, told["claude"]["state"]) == (code, state)
    assert told["claude"]["next"].startswith("install Claude Code")


def test_the_options_of_the_settings_say_which_program_is_looked_for(
    terminal: CommandTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = terminal.home / "config" / "sessionmgr" / "sessionmgr.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[options.claude]\ncommand = ["/bin/sh", "claude.sh"]')
    code, told = looked(terminal, "claude")
    assert (code, told["claude"]["detail"]) == (0, "/bin/sh is there; its login is unknown")


def test_a_provider_of_the_settings_that_does_not_exist_fails(
    terminal: CommandTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SESSIONMGR_PROVIDER", "claud")
    code, told = looked(terminal, "settings")
    assert (code, told["provider"]["state"]) == (3, "fail")
    assert told["provider"]["detail"] == (
        "SESSIONMGR_PROVIDER: unknown provider 'claud'; did you mean claude?"
    )
