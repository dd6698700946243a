"""A project's settings narrow, and do nothing else until the user trusts them."""

import argparse
import json
import stat
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from sessionmgr.cli.approval_rules import rules_of
from sessionmgr.cli.configuration import configure
from sessionmgr.cli.project_settings import AGENTS, narrowed
from sessionmgr.cli.setting import SETTINGS
from sessionmgr.errors import CommandLineInvalid
from sessionmgr.model import PermissionMode
from tests.cli.terminal import Terminal
from tests.cli.test_run import ask

ORDER = [
    PermissionMode.PLAN,
    PermissionMode.DEFAULT,
    PermissionMode.ACCEPT_EDITS,
    PermissionMode.FULL_AUTO,
    PermissionMode.DANGEROUSLY_SKIP_PERMISSIONS,
]


def project(terminal: Terminal, text: str) -> Path:
    path = terminal.home / "sessionmgr.toml"
    path.write_text(text)
    return path


def own(terminal: Terminal, text: str) -> None:
    path = terminal.home / "config" / "sessionmgr" / "sessionmgr.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def settings(terminal: Terminal) -> dict[str, object]:
    code, out, err = terminal.bare("--print-config", "--json")
    assert (code, err) == (0, "")
    told = [json.loads(line) for line in out.splitlines()]
    return {each["key"]: each["value"] for each in told if "key" in each}


def refused(terminal: Terminal) -> list[str]:
    _, out, _ = terminal.bare("--print-config", "--json")
    told = [json.loads(line) for line in out.splitlines()]
    return [each["refused"] for each in told if "refused" in each]


# --- what is taken untrusted ---------------------------------------------------------------------

REFUSED = {
    'store = "x.db"': ["store"],
    'log_file = "x.log"': ["log_file"],
    'capture = "x"': ["capture"],
    'approve = "rules.toml"': ["approve"],
    'on_denied = "fail"': ["on_denied"],
    'retry_from = "fresh"': ["retry_from"],
    'provider = "shell"': ["provider"],
    'provider = "some_other"': ["provider"],
    'tools_allowed = ["Bash"]': ["tools_allowed"],
    'retry_on = ["overloaded"]': ["retry_on"],
    "concurrency = 5": ["concurrency"],
    "retries = 3": ["retries"],
    "per_provider.claude = 5": ["per_provider.claude"],
    'permission_mode = "accept_edits"': ["permission_mode"],
    'permission_mode = "full_auto"': ["permission_mode"],
    'permission_mode = "dangerously_skip_permissions"': ["permission_mode"],
    "clocks.idle = 0": ["clocks.idle"],
    "clocks.approval = 121": ["clocks.approval"],
    'options.claude.command = ["/bin/sh"]': ["options.claude.command"],
    'options.codex.command = ["/bin/sh"]': ["options.codex.command"],
    'options.claude.home = "x"': ["options.claude.home"],
    "options.claude.mcp_servers.x.command = 'x'": ["options.claude.mcp_servers"],
    'options.claude.settings = "x"': ["options.claude.settings"],
    'options.claude.setting_sources = ["project"]': ["options.claude.setting_sources"],
    'options.claude.allow_rules = ["Bash"]': ["options.claude.allow_rules"],
    'options.claude.debug_file = "x"': ["options.claude.debug_file"],
    "options.codex.network = true": ["options.codex.network"],
    "options.codex.secrets = true": ["options.codex.secrets"],
    "options.codex.config.x = 1": ["options.codex.config"],
    "options.shell.shell = true": ["options.shell.shell"],
    'options.shell.env.LD_PRELOAD = "./x"': ["options.shell.env"],
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_does_not_narrow_is_refused_until_it_is_trusted(terminal: Terminal, text: str) -> None:
    before = settings(terminal)
    project(terminal, text)
    assert refused(terminal) == REFUSED[text]
    assert settings(terminal) == before
    assert terminal.bare("trust", ".")[0] == 0
    assert refused(terminal) == []
    assert settings(terminal) != before


TAKEN = {
    'provider = "claude"': ("provider", "claude"),
    'model = "opus"': ("model", "opus"),
    'effort = "low"': ("effort", "low"),
    'permission_mode = "plan"': ("permission_mode", "plan"),
    'tools_denied = ["Bash"]': ("tools_denied", ["Bash"]),
    "max_turns = 3": ("max_turns", 3),
    "deadline = 60": ("deadline", 60.0),
    "budget_usd = 1": ("budget_usd", 1.0),
    "concurrency = 2": ("concurrency", 2),
    "per_provider.claude = 4": ("per_provider", {"claude": 4}),
    "retries = 0": ("retries", 0),
    "max_failures = 1": ("max_failures", 1),
    "keep_failed = true": ("keep_failed", True),
    "clocks.idle = 60": ("clocks", {"idle": 60.0}),
    'options.claude.fallback_model = "haiku"': (
        "options",
        {"claude": {"fallback_model": "haiku"}},
    ),
}


@pytest.mark.parametrize("text", TAKEN)
def test_models_and_narrower_limits_are_taken_from_a_project(terminal: Terminal, text: str) -> None:
    project(terminal, text)
    name, value = TAKEN[text]
    assert refused(terminal) == []
    assert settings(terminal)[name] == value


def test_each_setting_is_decided(terminal: Terminal) -> None:
    named = {text.split(" ")[0].split(".")[0] for text in (*REFUSED, *TAKEN)}
    assert named == set(SETTINGS)


def test_a_project_cannot_drop_what_the_user_denies_or_exceed_a_limit(terminal: Terminal) -> None:
    own(
        terminal,
        'tools_denied = ["Bash"]\nmax_turns = 5\ndeadline = 60\nbudget_usd = 1.0\n'
        'max_failures = 2\nkeep_failed = true\npermission_mode = "full_auto"\n'
        "[clocks]\nidle = 10\ntool = 0\n"
        "[per_provider]\nclaude = 2\n",
    )
    project(
        terminal,
        'tools_denied = ["Write"]\nmax_turns = 6\ndeadline = 61\nbudget_usd = 1.1\n'
        'max_failures = 3\nkeep_failed = false\npermission_mode = "accept_edits"\n'
        "[clocks]\nidle = 11\ntool = 5\n"
        "[per_provider]\nclaude = 3\ncodex = 1\n",
    )
    told = settings(terminal)
    assert told["tools_denied"] == ["Bash", "Write"]
    assert (told["max_turns"], told["deadline"], told["budget_usd"]) == (5, 60.0, 1.0)
    assert (told["max_failures"], told["permission_mode"]) == (2, "accept_edits")
    assert told["clocks"] == {"idle": 10.0, "tool": 5.0}
    assert told["per_provider"] == {"claude": 2, "codex": 1}
    assert refused(terminal) == [
        *("max_turns", "deadline", "budget_usd", "max_failures", "keep_failed", "clocks.idle"),
        "per_provider.claude",
    ]


@given(
    users=st.sampled_from(ORDER) | st.none(),
    projects=st.sampled_from(ORDER),
)
def test_a_projects_mode_is_never_wider_than_the_users(
    users: PermissionMode | None, projects: PermissionMode
) -> None:
    known = {} if users is None else {"permission_mode": users}
    taken, refusals = narrowed("permission_mode", projects, known)
    limit = users or PermissionMode.DEFAULT
    if ORDER.index(projects) <= ORDER.index(limit):
        assert (taken, refusals) == (projects, [])
    else:
        assert taken is None
        assert [each.key for each in refusals] == [("permission_mode",)]


@given(name=st.text(max_size=20).filter(lambda name: name not in SETTINGS), value=st.integers())
def test_a_setting_that_is_not_listed_is_refused(name: str, value: int) -> None:
    taken, refusals = narrowed(name, value, {})
    assert taken is None
    assert len(refusals) == 1


def test_a_prompt_is_no_program_to_the_providers_that_a_project_may_choose() -> None:
    assert {"claude", "codex"} == AGENTS


# --- what is said --------------------------------------------------------------------------------


def test_the_note_names_file_key_value_and_remedy(terminal: Terminal) -> None:
    path = project(terminal, 'model = "x"\n[options.claude]\ncommand = ["/bin/sh", "-c", "id"]\n')
    code, out, err = terminal.bare("-q", "schema", "job")
    assert code == 0
    assert out.startswith("{")
    setting = f'{path}:3: options.claude.command = ["/bin/sh", "-c", "id"]'
    why = "only your own settings, or a trusted file, set this"
    remedy = "once you have read it, all of it is taken after: sessionmgr trust"
    assert err.splitlines() == [
        f"sessionmgr: {setting} is not taken: {why}",
        f"sessionmgr: {remedy} {terminal.home}",
    ]


def test_a_note_puts_no_control_character_of_a_project_on_the_terminal(terminal: Terminal) -> None:
    project(terminal, '[options.claude]\ncommand = ["\\u001b]0;x\\u0007\\u009b2J\\u202e"]\n')
    code, _, err = terminal.bare("schema", "job")
    assert code == 0
    assert not set(err) & set("\x1b\x07\x9b\u202e")
    _, out, _ = terminal.bare("trust", ".")
    assert not set(out) & set("\x1b\x07\x9b\u202e")


def test_print_config_shows_what_is_not_taken(terminal: Terminal) -> None:
    path = project(terminal, 'store = "x.db"\n')
    code, out, err = terminal.bare("--print-config")
    assert (code, err) == (0, "")
    why = "only your own settings, or a trusted file, set this"
    assert out.endswith(f'# not taken: store = "x.db" # {path}:1: {why}')


def test_a_projects_program_does_not_run(terminal: Terminal) -> None:
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
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(terminal, 'permission_mode = "full_auto"\n')
    monkeypatch.setenv("SESSIONMGR_PERMISSION_MODE", "accept_edits")
    monkeypatch.setenv("SESSIONMGR_STORE", "/x.db")
    told = settings(terminal)
    assert (told["permission_mode"], told["store"]) == ("accept_edits", "/x.db")


# --- trust ---------------------------------------------------------------------------------------


def test_a_trusted_file_is_shown_recorded_listed_and_revoked(terminal: Terminal) -> None:
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


def test_a_changed_file_is_not_trusted_any_more(terminal: Terminal) -> None:
    path = project(terminal, 'store = "x.db"\n')
    terminal.bare("trust", ".")
    path.write_text('store = "y.db"\n')
    assert refused(terminal) == ["store"]
    _, _, err = terminal.bare("schema", "job")
    assert f"{path} has changed since" in err
    assert terminal.bare("trust", "--list")[1] == f"changed  {path}"
    path.unlink()
    assert terminal.bare("trust", "--list")[1] == f"gone     {path}"


def test_a_file_that_a_trusted_file_names_is_part_of_what_is_trusted(terminal: Terminal) -> None:
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


def test_rules_that_are_not_trusted_answer_nothing(prompt: Terminal) -> None:
    project(prompt, 'approve = "rules.toml"\n')
    (prompt.home / "rules.toml").write_text('[[rule]]\ntool = "*"\ndecision = "allow"\n')
    _, _, err = prompt.bare("run", "-p", "scripted", json.dumps([ask("Read")]))
    assert "✗ denied: Read" in err


def test_rules_that_change_after_the_settings_were_read_are_refused(terminal: Terminal) -> None:
    project(terminal, 'approve = "rules.toml"\n')
    rules = terminal.home / "rules.toml"
    rules.write_text('[[rule]]\ntool = "Read"\ndecision = "allow"\n')
    terminal.bare("trust", ".")
    configuration = configure(argparse.Namespace())
    assert rules_of(configuration) is not None
    rules.write_text('[[rule]]\ntool = "*"\ndecision = "allow"\n')
    with pytest.raises(CommandLineInvalid, match="has changed since it was trusted"):
        rules_of(configuration)


def test_trust_is_of_one_file_and_not_of_those_below_or_beside(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = 'store = "x.db"\n'
    project(terminal, text)
    terminal.bare("trust", ".")
    below = terminal.home / "below"
    below.mkdir()
    (below / "sessionmgr.toml").write_text(text)
    monkeypatch.chdir(below)
    assert refused(terminal) == ["store"]


def test_a_link_to_a_trusted_directory_leads_to_what_is_trusted(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = terminal.home / "place"
    place.mkdir()
    (place / "sessionmgr.toml").write_text('store = "x.db"\n')
    (terminal.home / "link").symlink_to(place)
    assert terminal.bare("trust", "link")[0] == 0
    monkeypatch.chdir(place)
    assert refused(terminal) == []


def test_a_record_that_is_none_or_of_another_file_grants_nothing(terminal: Terminal) -> None:
    project(terminal, 'store = "x.db"\n')
    terminal.bare("trust", ".")
    (kept,) = (terminal.home / "state" / "sessionmgr" / "trusted").iterdir()
    whole = kept.read_text()
    kept.write_text("{")
    assert refused(terminal) == ["store"]
    kept.write_text(whole.replace(str(terminal.home), "/elsewhere"))
    assert refused(terminal) == ["store"]


WRONG: dict[tuple[str, ...], str] = {
    (): "trust: name one directory, or use --list, or --revoke DIR",
    (".", "--list"): "trust: name one directory, or use --list, or --revoke DIR",
    ("none",): "trust: there is no file {home}/none/sessionmgr.toml",
    ("--revoke", "."): "trust: {home}/sessionmgr.toml was not trusted: see sessionmgr trust --list",
    ("config/sessionmgr",): (
        "trust: {home}/config/sessionmgr/sessionmgr.toml is your own file, which is always taken"
    ),
}


@pytest.mark.parametrize("words", WRONG)
def test_what_cannot_be_trusted_is_told(terminal: Terminal, words: tuple[str, ...]) -> None:
    own(terminal, "")
    expected = f"sessionmgr: error: {WRONG[words]}".format(home=terminal.home)
    assert terminal.bare("trust", *words) == (1, "", expected)


def test_a_file_that_is_wrong_is_not_trusted(terminal: Terminal) -> None:
    place = terminal.home / "place"
    place.mkdir()
    path = place / "sessionmgr.toml"
    path.write_text("[options.shell]\ntimeuot = 1\n")
    code, _, err = terminal.bare("trust", "place")
    assert code == 1
    assert f"{path}:1: options of shell: there is no 'timeuot'" in err
    assert terminal.bare("trust", "--list") == (0, "", "")


def test_json_tells_of_trust_as_well(terminal: Terminal) -> None:
    path = project(terminal, 'store = "x.db"\n')
    _, out, _ = terminal.bare("trust", ".", "--json")
    assert json.loads(out)["state"] == "trusted"
    _, out, _ = terminal.bare("trust", "--list", "--json")
    assert (json.loads(out)["path"], json.loads(out)["state"]) == (str(path), "trusted")
    _, out, _ = terminal.bare("trust", "--revoke", ".", "--json")
    assert json.loads(out) == {"path": str(path), "state": "revoked"}


def test_a_home_that_is_a_project_may_be_trusted_once(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    below = terminal.home / "work" / "deep"
    below.mkdir(parents=True)
    project(terminal, "concurrency = 8\n")
    monkeypatch.chdir(below)
    assert terminal.bare("trust", "../..")[0] == 0
    assert settings(terminal)["concurrency"] == 8


@pytest.mark.parametrize("link", ["runs", "runs/jobs"])
def test_a_link_in_the_project_does_not_say_where_results_go(terminal: Terminal, link: str) -> None:
    job = {"id": "a", "provider": "shell", "prompt": "echo one"}
    (terminal.home / "jobs.jsonl").write_text(json.dumps(job))
    elsewhere = terminal.home / "elsewhere"
    elsewhere.mkdir()
    (terminal.home / link).parent.mkdir(exist_ok=True)
    (terminal.home / link).symlink_to(elsewhere)
    code, _, err = terminal.bare("batch", "jobs.jsonl")
    assert code == 1
    assert f"{link} is a symbolic link to {elsewhere}: to write there, say so with --out" in err
    assert list(elsewhere.iterdir()) == []
    assert terminal.bare("batch", "jobs.jsonl", "--out", "runs/jobs")[0] == 0
