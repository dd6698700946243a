"""A project's settings may only narrow until the user trusts them."""

import argparse
import errno
import json
import os
import stat
from pathlib import Path

import pytest

from sessionmgr.cli.config.approval_rules import load_approver
from sessionmgr.cli.config.configuration import load_configuration
from sessionmgr.cli.errors import CommandLineInvalid
from tests.cli.command_terminal import CommandTerminal
from tests.cli.test_run import ask


def project(terminal: CommandTerminal, text: str) -> Path:
    path = terminal.home / "sessionmgr.toml"
    path.write_text(text)
    return path


def own(terminal: CommandTerminal, text: str) -> None:
    path = terminal.home / "config" / "sessionmgr" / "sessionmgr.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def settings(terminal: CommandTerminal) -> dict[str, object]:
    code, out, err = terminal.bare("--print-config", "--json")
    assert (code, err) == (0, "")
    told = [json.loads(line) for line in out.splitlines()]
    return {each["key"]: each["value"] for each in told if "key" in each}


def refused(terminal: CommandTerminal) -> list[str]:
    _, out, _ = terminal.bare("--print-config", "--json")
    told = [json.loads(line) for line in out.splitlines()]
    return [each["refused"] for each in told if "refused" in each]


def test_the_note_names_file_key_value_and_remedy(terminal: CommandTerminal) -> None:
    path = project(terminal, 'model = "x"\n[options.claude]\ncommand = ["/bin/sh", "-c", "id"]\n')
    code, out, err = terminal.bare("-q", "schema", "job")
    assert code == 0
    assert out.startswith("{")
    setting = f'{path}:3: options.claude.command = ["/bin/sh", "-c", "id"]'
    why = "only your own settings or a trusted file may set this"
    remedy = "to use the whole file, read it, then run: sessionmgr trust"
    assert err.splitlines() == [
        f"sessionmgr: {setting} is refused: {why}",
        f"sessionmgr: {remedy} {terminal.home}",
    ]


def test_a_note_puts_no_control_character_of_a_project_on_the_terminal(
    terminal: CommandTerminal,
) -> None:
    project(terminal, '[options.claude]\ncommand = ["\\u001b]0;x\\u0007\\u009b2J\\u202e"]\n')
    code, _, err = terminal.bare("schema", "job")
    assert code == 0
    assert not set(err) & set("\x1b\x07\x9b\u202e")
    _, out, _ = terminal.bare("trust", ".")
    assert not set(out) & set("\x1b\x07\x9b\u202e")


def test_print_config_shows_what_is_not_taken(terminal: CommandTerminal) -> None:
    path = project(terminal, 'store = "x.db"\n')
    code, out, err = terminal.bare("--print-config")
    assert (code, err) == (0, "")
    why = "only your own settings or a trusted file may set this"
    assert out.endswith(f'# refused: store = "x.db" # {path}:1: {why}')


def test_a_projects_program_does_not_run(terminal: CommandTerminal) -> None:
    ran = terminal.home / "ran"
    project(
        terminal,
        'permission_mode = "dangerously_skip_permissions"\n[options.claude]\n'
        f'command = ["/bin/sh", "-c", "touch {ran}"]\n',
    )
    code, _, err = terminal("run", "-p", "claude", "--permission", "plan", "What is this?")
    assert code != 0
    assert "options.claude.command" in err
    assert not ran.exists()


def test_a_flag_and_a_variable_are_the_users_own(
    terminal: CommandTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(terminal, 'permission_mode = "full_auto"\n')
    monkeypatch.setenv("SESSIONMGR_PERMISSION_MODE", "accept_edits")
    monkeypatch.setenv("SESSIONMGR_STORE", "/x.db")
    told = settings(terminal)
    assert (told["permission_mode"], told["store"]) == ("accept_edits", "/x.db")


# --- trust ---------------------------------------------------------------------------------------


def test_a_trusted_file_is_shown_recorded_listed_and_revoked(terminal: CommandTerminal) -> None:
    path = project(terminal, 'model = "m"\nstore = "x.db"\n')
    code, out, err = terminal.bare("trust", ".")
    assert code == 0
    assert out == f'store = "x.db" # {path}:2'
    assert err == f"sessionmgr: {path} is trusted until it changes"
    assert settings(terminal)["store"] == str(terminal.home / "x.db")
    assert terminal.bare("trust", "--list") == (0, f"trusted  {path}", "")
    records = terminal.home / "state" / "sessionmgr" / "trusted"
    (kept,) = records.iterdir()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(records.stat().st_mode) == 0o700
    assert terminal.bare("trust", "--revoke", str(path))[0] == 0
    assert refused(terminal) == ["store"]
    assert terminal.bare("trust", "--list") == (0, "", "")


def test_a_changed_file_is_not_trusted_any_more(terminal: CommandTerminal) -> None:
    path = project(terminal, 'store = "x.db"\n')
    terminal.bare("trust", ".")
    path.write_text('store = "y.db"\n')
    assert refused(terminal) == ["store"]
    _, _, err = terminal.bare("schema", "job")
    assert f"{path} has changed since" in err
    assert terminal.bare("trust", "--list")[1] == f"changed  {path}"
    path.unlink()
    assert terminal.bare("trust", "--list")[1] == f"gone     {path}"


def test_a_file_that_a_trusted_file_names_is_part_of_what_is_trusted(
    terminal: CommandTerminal,
) -> None:
    project(terminal, 'approve = "rules.toml"\n')
    rules = terminal.home / "rules.toml"
    rules.write_text('[[rule]]\ntool = "Read"\ndecision = "allow"\n')
    _, out, _ = terminal.bare("trust", ".")
    assert f"# and the file {rules}" in out
    assert refused(terminal) == []
    rules.write_text('[[rule]]\ntool = "*"\ndecision = "allow"\n')
    assert refused(terminal) == ["approve"]
    rules.unlink()
    assert refused(terminal) == ["approve"]


@pytest.mark.parametrize(
    "text",
    [
        "exec ./tools/agent.sh --fast",
        "cd / && bash {home}/tools/agent.sh",
        "--settings=tools/agent.sh",
        'sh -c "tools/agent.sh;true"',
        "notify=['tools/agent.sh']",
        "cat <'tools/my agent.sh'",
    ],
)
def test_a_script_that_words_of_a_trusted_text_name_is_part_of_what_is_trusted(
    text: str, terminal: CommandTerminal
) -> None:
    tools = terminal.home / "tools"
    tools.mkdir()
    for name in ("agent.sh", "my agent.sh"):
        (tools / name).write_text("true")
    told = json.dumps(text.format(home=terminal.home))
    project(terminal, f'options.claude.command = ["sh", "-c", {told}]\n')
    _, out, _ = terminal.bare("trust", ".")
    script = tools / ("my agent.sh" if "my agent.sh" in text else "agent.sh")
    assert out.splitlines()[1:] == [f"# and the file {script}"]
    assert refused(terminal) == []
    script.write_text("rm -rf ~")
    assert refused(terminal) == ["options.claude.command"]


@pytest.mark.parametrize("place", ["beside", "absolute", "linked"])
def test_rules_outside_of_the_project_are_part_of_what_is_trusted(
    terminal: CommandTerminal, place: str
) -> None:
    rules = terminal.home.parent / "rules beside.toml"
    rules.write_text('[[rule]]\ntool = "Read"\ndecision = "allow"\n')
    (terminal.home / "link.toml").symlink_to(rules)
    names = {"beside": "../rules beside.toml", "absolute": str(rules), "linked": "link.toml"}
    project(terminal, f"approve = {json.dumps(names[place])}\n")
    terminal.bare("trust", ".")
    assert refused(terminal) == []
    rules.write_text('[[rule]]\ntool = "*"\ndecision = "allow"\n')
    assert refused(terminal) == ["approve"]


def test_what_a_program_outside_of_the_project_is_does_not_count(terminal: CommandTerminal) -> None:
    program = terminal.home.parent / "agent"
    program.write_text("one version")
    project(terminal, f"options.claude.command = [{json.dumps(str(program))}]\n")
    terminal.bare("trust", ".")
    program.write_text("another version")
    assert refused(terminal) == []


def test_trusted_options_name_the_files_beside_them_wherever_a_run_works(
    terminal: CommandTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    claude = 'command = ["tools/agent", "a.js", "none.js", "-v"], settings = "settings.json"'
    servers = 'mcp_servers.x = {command = "claude", args = ["./a.js"]}, fallback_model = "opus"'
    project(terminal, f"options.claude = {{{claude}, {servers}}}\n")
    below = terminal.home / "below"
    below.mkdir()
    for directory in (terminal.home, below):
        for name in ("a.js", "settings.json", "claude", "opus"):
            (directory / name).touch()
    (below / "tools").mkdir()
    (below / "tools" / "agent").touch()
    terminal.bare("trust", ".")
    monkeypatch.chdir(below)
    home = terminal.home
    assert load_configuration(argparse.Namespace()).options["claude"] == {
        "command": [f"{home}/tools/agent", f"{home}/a.js", "none.js", "-v"],
        "settings": f"{home}/settings.json",
        "mcp_servers": {"x": {"command": "claude", "args": [f"{home}/a.js"]}},
        "fallback_model": "opus",
    }


def test_files_that_a_run_writes_are_not_part_of_what_is_trusted(terminal: CommandTerminal) -> None:
    project(terminal, 'store = "sessions.db"\nlog_file = "log.txt"\n')
    terminal.bare("trust", ".")
    assert terminal.bare("run", "-p", "shell", "true")[0] == 0
    assert (terminal.home / "sessions.db").exists()
    assert refused(terminal) == []


def test_rules_that_are_not_trusted_answer_nothing(prompt: CommandTerminal) -> None:
    project(prompt, 'approve = "rules.toml"\n')
    (prompt.home / "rules.toml").write_text('[[rule]]\ntool = "*"\ndecision = "allow"\n')
    _, _, err = prompt.bare("run", "-p", "scripted", json.dumps([ask("Read")]))
    assert "✗ denied: Read" in err


def test_rules_that_change_after_the_settings_were_read_are_refused(
    terminal: CommandTerminal,
) -> None:
    project(terminal, 'approve = "rules.toml"\n')
    rules = terminal.home / "rules.toml"
    rules.write_text('[[rule]]\ntool = "Read"\ndecision = "allow"\n')
    terminal.bare("trust", ".")
    configuration = load_configuration(argparse.Namespace())
    assert load_approver(configuration) is not None
    rules.write_text('[[rule]]\ntool = "*"\ndecision = "allow"\n')
    with pytest.raises(CommandLineInvalid, match="has changed since it was trusted"):
        load_approver(configuration)


def test_a_text_that_can_be_no_files_name_names_none(terminal: CommandTerminal) -> None:
    parts = ", ".join(json.dumps(each) for each in ("x" * 300, "x" * 5000, "", "a/../.."))
    project(terminal, f"options.claude.command = [{parts}]\n")
    _, out, _ = terminal.bare("trust", ".", "--json")
    assert json.loads(out)["files"] == {}


def test_a_record_that_cannot_be_written_leaves_nothing(
    terminal: CommandTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(fd: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    project(terminal, 'store = "x.db"\n')
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", refuse)
        code, _, err = terminal.bare("trust", ".")
    assert (code, err) == (1, "sessionmgr: error: No space left on device")
    assert list((terminal.home / "state" / "sessionmgr" / "trusted").iterdir()) == []


def test_trust_is_of_one_file_and_not_of_those_below_or_beside(
    terminal: CommandTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = 'store = "x.db"\n'
    project(terminal, text)
    terminal.bare("trust", ".")
    below = terminal.home / "below"
    below.mkdir()
    (below / "sessionmgr.toml").write_text(text)
    monkeypatch.chdir(below)
    assert refused(terminal) == ["store"]


def test_a_project_does_not_hide_what_is_trusted_above_it(
    terminal: CommandTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    above = project(terminal, 'permission_mode = "plan"\nmodel = "a"\nstore = "x.db"\n')
    terminal.bare("trust", ".")
    below = terminal.home / "below" / "deep"
    below.mkdir(parents=True)
    (below / "sessionmgr.toml").write_text('permission_mode = "default"\nmodel = "b"\n')
    (below.parent / "sessionmgr.toml").write_text("not looked at")
    monkeypatch.chdir(below)
    told = settings(terminal)
    assert (told["permission_mode"], told["model"]) == ("plan", "b")
    assert told["store"] == str(terminal.home / "x.db")
    assert refused(terminal) == ["permission_mode"]
    above.write_text('permission_mode = "full_auto"\n')
    assert settings(terminal)["permission_mode"] == "default"


def test_a_link_to_a_trusted_directory_leads_to_what_is_trusted(
    terminal: CommandTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = terminal.home / "place"
    place.mkdir()
    (place / "sessionmgr.toml").write_text('store = "x.db"\n')
    (terminal.home / "link").symlink_to(place)
    assert terminal.bare("trust", "link")[0] == 0
    monkeypatch.chdir(place)
    assert refused(terminal) == []


def test_a_record_that_is_none_or_of_another_file_grants_nothing(terminal: CommandTerminal) -> None:
    project(terminal, 'store = "x.db"\n')
    terminal.bare("trust", ".")
    (kept,) = (terminal.home / "state" / "sessionmgr" / "trusted").iterdir()
    whole = kept.read_text()
    kept.write_text("{")
    assert refused(terminal) == ["store"]
    assert terminal.bare("trust", "--list") == (0, "", "")
    kept.write_text(whole.replace(str(terminal.home), "/elsewhere"))
    assert refused(terminal) == ["store"]


WRONG: dict[tuple[str, ...], str] = {
    (): "trust: name one directory, or use --list, or --revoke DIR",
    (".", "--list"): "trust: name one directory, or use --list, or --revoke DIR",
    ("none",): "trust: no such file: {home}/none/sessionmgr.toml",
    ("--revoke", "."): "trust: {home}/sessionmgr.toml was not trusted: see sessionmgr trust --list",
    ("config/sessionmgr",): (
        "trust: {home}/config/sessionmgr/sessionmgr.toml is your own file, which is always trusted"
    ),
}


@pytest.mark.parametrize("words", WRONG)
def test_what_cannot_be_trusted_is_named(terminal: CommandTerminal, words: tuple[str, ...]) -> None:
    own(terminal, "")
    expected = f"sessionmgr: error: {WRONG[words]}".format(home=terminal.home)
    assert terminal.bare("trust", *words) == (1, "", expected)


def test_a_file_that_is_wrong_is_not_trusted(terminal: CommandTerminal) -> None:
    place = terminal.home / "place"
    place.mkdir()
    path = place / "sessionmgr.toml"
    path.write_text("[options.shell]\ntimeuot = 1\n")
    code, _, err = terminal.bare("trust", "place")
    assert code == 1
    assert f"{path}:1: options.shell: unknown option 'timeuot'" in err
    assert terminal.bare("trust", "--list") == (0, "", "")


def test_json_tells_of_trust_as_well(terminal: CommandTerminal) -> None:
    path = project(terminal, 'store = "x.db"\n')
    _, out, _ = terminal.bare("trust", ".", "--json")
    assert json.loads(out)["state"] == "trusted"
    _, out, _ = terminal.bare("trust", "--list", "--json")
    assert (json.loads(out)["path"], json.loads(out)["state"]) == (str(path), "trusted")
    _, out, _ = terminal.bare("trust", "--revoke", ".", "--json")
    assert json.loads(out) == {"path": str(path), "state": "revoked"}


def test_a_home_that_is_a_project_may_be_trusted_once(
    terminal: CommandTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    below = terminal.home / "work" / "deep"
    below.mkdir(parents=True)
    project(terminal, "concurrency = 8\n")
    monkeypatch.chdir(below)
    assert terminal.bare("trust", "../..")[0] == 0
    assert settings(terminal)["concurrency"] == 8


@pytest.mark.parametrize("link", ["runs", "runs/jobs"])
def test_a_link_in_the_project_does_not_say_where_results_go(
    terminal: CommandTerminal, link: str
) -> None:
    job = {"id": "a", "provider": "shell", "prompt": "echo one"}
    (terminal.home / "jobs.jsonl").write_text(json.dumps(job))
    elsewhere = terminal.home / "elsewhere"
    elsewhere.mkdir()
    (terminal.home / link).parent.mkdir(exist_ok=True)
    (terminal.home / link).symlink_to(elsewhere)
    code, _, err = terminal.bare("batch", "jobs.jsonl")
    assert code == 1
    assert f"{link} is a symbolic link to {elsewhere}: to write there, name it with --out" in err
    assert list(elsewhere.iterdir()) == []
    assert terminal.bare("batch", "jobs.jsonl", "--out", "runs/jobs")[0] == 0
