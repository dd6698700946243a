"""Settings come from files, variables and flags; later ones take precedence; each has a source."""

import json
import os
from pathlib import Path

import pytest

from sessionmgr.cli.config.configuration import Configuration
from sessionmgr.cli.config.settings import SETTINGS
from sessionmgr.cli.config.toml_file import line_of
from tests.cli.command_terminal import CommandTerminal


def settings(terminal: CommandTerminal, *words: str) -> dict[str, tuple[object, str]]:
    code, out, err = terminal.bare(*words, "--print-config", "--json")
    assert (code, err) == (0, "")
    told = [json.loads(line) for line in out.splitlines()]
    return {each["key"]: (each["value"], each["source"]) for each in told}


def trust(terminal: CommandTerminal) -> None:
    """Trust the project's file."""
    assert terminal.bare("trust", str(terminal.home))[0] == 0


def users_file(terminal: CommandTerminal) -> Path:
    path = terminal.home / "config" / "sessionmgr" / "sessionmgr.toml"
    path.parent.mkdir(parents=True)
    return path


def test_every_setting_has_a_field_and_a_line(terminal: CommandTerminal) -> None:
    fields = set(Configuration.__struct_fields__) - {"defaults", "sources", "refused", "trusted"}
    assert set(SETTINGS) == fields
    assert settings(terminal).keys() == fields


def test_a_setting_without_a_source_has_its_default(terminal: CommandTerminal) -> None:
    told = settings(terminal)
    assert told["store"] == (str(terminal.home / "state/sessionmgr/sessionmgr.db"), "default")
    assert told["concurrency"] == (4, "default")
    assert told["provider"] == (None, "default")


def test_files_variables_and_flags_win_over_each_other_in_that_order(
    terminal: CommandTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = users_file(terminal)
    users.write_text('provider = "a"\nmodel = "a"\nretries = 1\nstore = "a.db"\n')
    nearest = terminal.home / "sessionmgr.toml"
    nearest.write_text('# ours\nmodel = "b"\nretries = 3\nstore = "b.db"\n')
    below = terminal.home / "deep" / "down"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    trust(terminal)
    monkeypatch.setenv("SESSIONMGR_RETRIES", "5")
    monkeypatch.setenv("SESSIONMGR_STORE", "/c.db")
    told = settings(terminal, "--store", "d.db")
    assert told["provider"] == ("a", f"{users}:1")
    assert told["model"] == ("b", f"{nearest}:2")
    assert told["retries"] == (5, "SESSIONMGR_RETRIES")
    assert told["store"] == ("d.db", "--store")
    assert settings(terminal)["store"] == ("/c.db", "SESSIONMGR_STORE")


def test_a_path_in_a_file_starts_where_the_file_is(
    terminal: CommandTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    (terminal.home / "sessionmgr.toml").write_text('store = "runs/x.db"\nlog_file = "~/log"\n')
    (terminal.home / "below").mkdir()
    monkeypatch.chdir(terminal.home / "below")
    trust(terminal)
    told = settings(terminal)
    assert told["store"][0] == str(terminal.home / "runs/x.db")
    assert told["log_file"][0] == str(terminal.home / "log")


def test_tables_are_joined_name_by_name(
    terminal: CommandTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = users_file(terminal)
    users.write_text("[clocks]\nidle = 600\ntool = 60\n[options.shell]\nshell = true\n")
    nearest = terminal.home / "sessionmgr.toml"
    nearest.write_text(
        "clocks.idle = 5\n[options.shell]\ntimeout = 3\n[options.claude]\ntext = true\n"
    )
    trust(terminal)
    monkeypatch.setenv("SESSIONMGR_CLOCKS", "close=2,model=0")
    told = settings(terminal)
    assert told["clocks"][0] == {"idle": 5.0, "tool": 60.0, "close": 2.0, "model": 0.0}
    assert told["clocks"][1] == f"{users}:1, {nearest}:1, SESSIONMGR_CLOCKS"
    assert told["options"][0] == {
        "shell": {"shell": True, "timeout": 3},
        "claude": {"text": True},
    }


def test_the_settings_are_printed_as_toml_that_means_the_same(terminal: CommandTerminal) -> None:
    path = terminal.home / "sessionmgr.toml"
    path.write_text(
        'tools_denied = ["a", "b\\"c"]\nkeep_failed = true\nbudget_usd = 1.5\n'
        'permission_mode = "plan"\nretry_on = ["overloaded"]\nretry_from = "ask"\n'
        "[per_provider]\nclaude = 8\n[options.shell]\nenv = { A = 'b' }\n"
    )
    trust(terminal)
    first = settings(terminal)
    code, out, _ = terminal.bare("--print-config")
    assert code == 0
    assert f'permission_mode = "plan"  # {path}:4' in out
    assert "# model: not set" in out
    path.write_text(out)
    trust(terminal)
    assert {name: value for name, (value, _) in settings(terminal).items()} == {
        name: value for name, (value, _) in first.items()
    }


def test_a_verb_prints_its_settings_without_its_arguments(terminal: CommandTerminal) -> None:
    told = settings(terminal, "show")
    assert told["store"][1] == "default"


def test_an_empty_variable_says_nothing(
    terminal: CommandTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SESSIONMGR_STORE", "")
    assert settings(terminal)["store"][1] == "default"


def test_variables_of_others_that_begin_like_ours_are_left_alone(
    terminal: CommandTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SESSIONMGR_TREE", "1:2")
    monkeypatch.setenv("SESSIONMGR_RECORDINGS", "/x")
    assert settings(terminal)["store"][1] == "default"


WRONG_FILES = {
    'provder = "x"': "{file}:1: unknown setting 'provder'; did you mean provider?",
    "\n\n[clock]\nidle = 3": "{file}:3: unknown setting 'clock'; did you mean clocks?",
    "retries = 1\nconcurrency = 'four'": (
        "{file}:2: concurrency: expected a whole number, 1 or more, got 'four'"
    ),
    "concurrency = 0": "{file}:1: concurrency: expected a whole number, 1 or more, got 0",
    "concurrency = true": "{file}:1: concurrency: expected a whole number, 1 or more, got true",
    "retries = -1": "{file}:1: retries: expected a whole number, 0 or more, got -1",
    "model = 5": "{file}:1: model: expected some text, got 5",
    "model = ''": "{file}:1: model: expected some text, got ''",
    "store = 5": "{file}:1: store: expected a path, got 5",
    "deadline = 0": "{file}:1: deadline: expected a duration like 900, 15m or 2h, got 0",
    "deadline = 'soon'": (
        "{file}:1: deadline: expected a duration like 900, 15m or 2h, got 'soon'"
    ),
    "deadline = nan": "{file}:1: deadline: expected a duration like 900, 15m or 2h, got nan",
    "budget_usd = '1'": "{file}:1: budget_usd: expected dollars, more than 0, got '1'",
    "keep_failed = 1": "{file}:1: keep_failed: expected true or false, got 1",
    "tools_denied = 'rm'": "{file}:1: tools_denied: expected a list of names, got 'rm'",
    "tools_denied = [1]": "{file}:1: tools_denied: expected a list of names, got 1",
    "permission_mode = 'fullauto'": (
        "{file}:1: permission_mode: unknown permission mode 'fullauto'; did you mean full_auto?"
    ),
    "retry_from = 'start'": (
        "{file}:1: retry_from: unknown policy 'start'; known: session, fresh, ask"
    ),
    "retry_on = ['overload']": (
        "{file}:1: retry_on: unknown kind of failure 'overload'; did you mean overloaded?"
    ),
    "[clocks]\nidle = 5\nidel = 3": ("{file}:3: clocks: unknown clock 'idel'; did you mean idle?"),
    "[clocks]\nidle = 5\nstart = -3": (
        "{file}:3: clocks: start: "
        "expected a duration like 900, 15m or 2h, or 0 for no limit, got -3"
    ),
    "clocks = 3": "{file}:1: clocks: expected a table (clock = …), got 3",
    "\n[options.shell]\ntimeuot = 1": (
        "{file}:2: options.shell: unknown option 'timeuot'; did you mean 'timeout'?"
    ),
    "[options.shel]\ntimeout = 1": (
        "{file}:1: options: unknown provider 'shel'; did you mean shell?"
    ),
    "[per_provider]\nclaude = 0": (
        "{file}:2: per_provider: claude: expected a whole number, 1 or more, got 0"
    ),
    "[options]\nshell = 3": "{file}:2: options: shell: expected a table (option = …), got 3",
    "model = ": "{file}:1: invalid TOML: Invalid value",
    "model = 'a'\nmodel = 'b'": "{file}:2: invalid TOML: Cannot overwrite a value",
}


@pytest.mark.parametrize("text", WRONG_FILES, ids=range(len(WRONG_FILES)))
def test_a_wrong_file_is_reported_with_its_line(terminal: CommandTerminal, text: str) -> None:
    path = terminal.home / "sessionmgr.toml"
    path.write_text(text)
    expected = WRONG_FILES[text].format(file=path)
    for words in (["sessions"], ["--print-config"], ["show", "x"]):
        assert terminal.bare(*words) == (1, "", f"sessionmgr: error: {expected}")


def test_a_file_that_is_no_text_is_reported_with_its_line(terminal: CommandTerminal) -> None:
    path = terminal.home / "sessionmgr.toml"
    path.write_bytes(b"# one\n# \xff two\n")
    expected = f"sessionmgr: error: {path}:2: invalid TOML: not UTF-8 text"
    assert terminal.bare("sessions") == (1, "", expected)


WRONG_VARIABLES = {
    ("SESSIONMGR_STROE", "x"): "SESSIONMGR_STROE: unknown setting; did you mean SESSIONMGR_STORE?",
    ("SESSIONMGR_CONCURRENCY", "many"): "SESSIONMGR_CONCURRENCY: expected a whole number, "
    "1 or more, got 'many'",
    ("SESSIONMGR_KEEP_FAILED", "perhaps"): "SESSIONMGR_KEEP_FAILED: expected true or false, "
    "got 'perhaps'",
    ("SESSIONMGR_CLOCKS", "idle"): "SESSIONMGR_CLOCKS: expected NAME=VALUE, got 'idle'",
    ("SESSIONMGR_CLOCKS", "idle=x"): "SESSIONMGR_CLOCKS: idle: expected a duration "
    "like 900, 15m or 2h, or 0 for no limit, got 'x'",
    ("SESSIONMGR_PERMISSION_MODE", "root"): "SESSIONMGR_PERMISSION_MODE: unknown permission "
    "mode 'root'; known: default, accept_edits, plan, full_auto, dangerously_skip_permissions",
}


@pytest.mark.parametrize(("variable", "value"), WRONG_VARIABLES)
def test_a_wrong_variable_is_reported_by_its_name(
    terminal: CommandTerminal, variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    expected = f"sessionmgr: error: {WRONG_VARIABLES[variable, value]}"
    assert terminal.bare("sessions") == (1, "", expected)


def test_a_line_is_found_in_every_way_to_write_a_key() -> None:
    text = 'a = 1\n[ b . "c d" ]\ne.f = 2\n[[g]]\nh = 3\n"i j" = 4\n'
    assert line_of(text, ("a",)) == 1
    assert line_of(text, ("b",)) == 2
    assert line_of(text, ("b", "c d", "e", "f")) == 3
    assert line_of(text, ("g", "h")) == 5
    assert line_of(text, ("g", "i j")) == 6
    assert line_of(text, ("nothing",)) == 1


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_settings_of_strangers_above_are_passed_over(
    terminal: CommandTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = terminal.home / "sessionmgr.toml"
    path.write_text('model = "theirs"')
    below = terminal.home / "ours"
    below.mkdir()
    monkeypatch.chdir(below)
    os.chown(path, 12345, 12345)
    code, out, err = terminal.bare("--print-config")
    assert (code, err) == (0, f"sessionmgr: {path} is ignored: it belongs to another user")
    assert "theirs" not in out
    os.chown(below, 12345, 12345)  # the owner of the directory counts: the agents work for them
    code, out, err = terminal.bare("--print-config")
    assert (code, err) == (0, "")
    assert "theirs" in out


def test_a_relative_state_home_is_passed_over(
    terminal: CommandTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    expected = str(terminal.home / ".local/state/sessionmgr/sessionmgr.db")
    assert settings(terminal)["store"][0] == expected


def test_a_duration_may_be_written_with_its_unit_wherever_it_is_set(
    terminal: CommandTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    users_file(terminal).write_text('deadline = "2h"\n[clocks]\nidle = "15m"\nstart = 90\n')
    monkeypatch.setenv("SESSIONMGR_CLOCKS", "tool=1h30m")
    found = settings(terminal, "run")
    assert found["deadline"][0] == 7200.0
    assert found["clocks"][0] == {"idle": 900.0, "start": 90.0, "tool": 5400.0}
    monkeypatch.setenv("SESSIONMGR_DEADLINE", "45m")
    assert settings(terminal, "run")["deadline"][0] == 2700.0
    assert settings(terminal, "run", "--deadline", "1d")["deadline"][0] == 86400.0
