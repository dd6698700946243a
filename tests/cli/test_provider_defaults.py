"""A provider has defaults of its own, in files, variables and flags, above the general ones."""

import json

import pytest

from sessionmgr.batch import Job
from sessionmgr.batch.field_types import DURATIONS
from sessionmgr.cli.config.provider_defaults import FIELDS
from sessionmgr.cli.config.settings import SETTINGS
from tests.cli.command_terminal import CommandTerminal
from tests.cli.test_configuration import settings, trust, users_file
from tests.cli.test_trust import own, project, refused, settings as effective


def defaults(terminal: CommandTerminal, *words: str) -> dict[str, tuple[object, str]]:
    """Return the defaults of providers, without the prefix of their keys."""
    code, out, err = terminal.bare("run", *words, "--print-config", "--json")
    assert (code, err) == (0, "")
    told = [json.loads(line) for line in out.splitlines()]
    return {
        each["key"].removeprefix("provider."): (each["value"], each["source"])
        for each in told
        if each.get("key", "").startswith("provider.")
    }


def test_each_default_is_a_setting_and_a_field_of_a_job() -> None:
    assert set(FIELDS) <= set(SETTINGS) & set(Job.__struct_fields__)
    assert set(DURATIONS) <= set(FIELDS)


def test_a_file_sets_defaults_of_providers(terminal: CommandTerminal) -> None:
    path = users_file(terminal)
    path.write_text(
        'model = "general"\n[provider]\ndefault = "claude"\n'
        '[provider.claude]\nmodel = "haiku"\ndeadline = "15m"\n'
        "[provider.codex]\neffort = 'high'\n[provider.claude.options]\ntext = true\n"
    )
    told = settings(terminal)
    assert told["provider"] == ("claude", f"{path}:3")
    assert told["model"] == ("general", f"{path}:1")
    assert told["options"] == ({"claude": {"text": True}}, f"{path}:9")
    assert defaults(terminal) == {
        "claude.model": ("haiku", f"{path}:5"),
        "claude.deadline": (900.0, f"{path}:6"),
        "codex.effort": ("high", f"{path}:8"),
    }


def test_the_defaults_are_printed_as_toml_that_means_the_same(terminal: CommandTerminal) -> None:
    path = terminal.home / "sessionmgr.toml"
    path.write_text(
        'provider.default = "codex"\n[provider.codex]\ntools_denied = ["a b"]\n'
        'permission_mode = "plan"\nbudget_usd = 2\n'
    )
    trust(terminal)
    first = settings(terminal)
    code, out, _ = terminal.bare("--print-config")
    assert code == 0
    assert f'provider.codex.permission_mode = "plan"  # {path}:4' in out
    path.write_text(out)
    trust(terminal)
    again = settings(terminal)
    assert {name: each[0] for name, each in again.items()} == {
        name: each[0] for name, each in first.items()
    }


def test_later_sources_win_and_in_one_source_the_default_of_the_provider_does(
    terminal: CommandTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = users_file(terminal)
    path.write_text('[provider.claude]\nmodel = "file"\neffort = "low"\nmax_turns = 3\n')
    assert defaults(terminal)["claude.model"] == ("file", f"{path}:2")
    monkeypatch.setenv("SESSIONMGR_MODEL", "general")
    assert "claude.model" not in defaults(terminal)
    monkeypatch.setenv("SESSIONMGR_PROVIDER_CLAUDE_MODEL", "variable")
    monkeypatch.setenv("SESSIONMGR_PROVIDER_CLAUDE_MAX_TURNS", "")
    assert defaults(terminal) == {
        "claude.effort": ("low", f"{path}:3"),
        "claude.max_turns": (3, f"{path}:4"),
        "claude.model": ("variable", "SESSIONMGR_PROVIDER_CLAUDE_MODEL"),
    }
    assert "claude.model" not in defaults(terminal, "--model", "flag")
    both = defaults(terminal, "--set", "claude.model=own", "--model", "flag")
    assert both["claude.model"] == ("own", "--set")


def test_a_flag_sets_an_option_of_a_provider(terminal: CommandTerminal) -> None:
    words = ("--set", "shell.options.shell=true", "--set", "shell.options.timeout=5m")
    told = settings(terminal, "run", *words)["options"]
    assert told == ({"shell": {"shell": True, "timeout": "5m"}}, "--set, --set")


WRONG_FILES = {
    "[provider.claud]\nmodel = 'x'": (
        "{file}:1: provider: unknown provider 'claud'; did you mean claude?"
    ),
    "[provider.claude]\nmodle = 'x'": (
        "{file}:2: provider: unknown default 'modle' of claude; did you mean model?"
    ),
    "[provider.claude]\nmodel = 'x'\nbudget_usd = 0": (
        "{file}:3: provider: claude.budget_usd: expected dollars, more than 0, got 0"
    ),
    "provider.claude = 3": "{file}:1: provider: expected a table ([provider.claude]), got 3",
    "provider = 3": "{file}:1: provider: expected some text, got 3",
    "[provider.shell.options]\ntimeuot = 1": (
        "{file}:1: options.shell: unknown option 'timeuot'; did you mean 'timeout'?"
    ),
    "provider = 'claude'\n[provider.claude]\nmodel = 'x'": (
        "{file}:2: invalid TOML: Cannot overwrite a value; "
        'beside [provider.NAME], write provider.default = "NAME"'
    ),
}


@pytest.mark.parametrize("text", WRONG_FILES, ids=range(len(WRONG_FILES)))
def test_a_wrong_default_in_a_file_is_refused_with_its_line(
    terminal: CommandTerminal, text: str
) -> None:
    path = terminal.home / "sessionmgr.toml"
    path.write_text(text)
    expected = WRONG_FILES[text].format(file=path)
    assert terminal.bare("--print-config") == (1, "", f"sessionmgr: error: {expected}")


WRONG_FLAGS = {
    "model=x": "expected PROVIDER.KEY=VALUE, such as claude.model=haiku, got 'model=x'",
    "claude.model": "expected PROVIDER.KEY=VALUE, such as claude.model=haiku, got 'claude.model'",
    "cluade.model=x": "unknown provider 'cluade'; did you mean claude?",
    "claude.modell=x": "unknown default 'modell' of claude; did you mean model?",
    "claude.budget_usd=much": "claude.budget_usd: expected dollars, more than 0, got 'much'",
    "claude.options=3": "expected claude.options.NAME=VALUE, got claude.options=3",
    "claude.model.x=3": "claude.model has no parts, got 'claude.model.x'",
    "claude.permission_mode=fullauto": (
        "claude.permission_mode: unknown permission mode 'fullauto'; did you mean full_auto?"
    ),
}


@pytest.mark.parametrize("text", WRONG_FLAGS)
def test_a_wrong_default_of_a_flag_is_refused(terminal: CommandTerminal, text: str) -> None:
    expected = f"sessionmgr: error: --set: {WRONG_FLAGS[text]}"
    assert terminal.bare("run", "-p", "shell", "true", "--set", text) == (1, "", expected)


WRONG_VARIABLES = {
    "SESSIONMGR_PROVIDER_CLAUDE_MODLE": (
        "unknown setting; did you mean SESSIONMGR_PROVIDER_CLAUDE_MODEL?"
    ),
    "SESSIONMGR_PROVIDER_CLUADE_MODEL": "unknown provider 'cluade'; did you mean claude?",
    "SESSIONMGR_PROVIDER_CLAUDE_DEADLINE": (
        "claude.deadline: expected a duration like 900, 15m or 2h, got 'x'"
    ),
}


@pytest.mark.parametrize("name", WRONG_VARIABLES)
def test_a_wrong_default_of_a_variable_is_refused(
    terminal: CommandTerminal, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "x")
    expected = f"sessionmgr: error: {name}: {WRONG_VARIABLES[name]}"
    assert terminal.bare("sessions") == (1, "", expected)


# --- what they do --------------------------------------------------------------------------------


def test_a_run_gets_the_defaults_of_its_provider(terminal: CommandTerminal) -> None:
    words = ("run", "-p", "shell", "echo yes")
    code, _, err = terminal(*words, "--set", "shell.budget_usd=2", "--set", "codex.model=x")
    assert code == 1
    assert "error: budget_usd (2.0, from --set): shell reports no cost" in err
    assert terminal(*words, "--set", "claude.budget_usd=2")[:2] == (0, "yes")


def test_a_job_gets_the_defaults_of_its_own_provider_unless_it_says_otherwise(
    terminal: CommandTerminal,
) -> None:
    users_file(terminal).write_text(
        '[provider.shell]\ndeadline = 0.2\n[provider.codex]\nmodel = "x"\n'
    )
    jobs = [
        {"id": "cut", "prompt": "sleep 600"},
        {"id": "own", "prompt": "echo", "deadline": 500},
    ]
    path = terminal.home / "jobs.jsonl"
    path.write_text("".join(json.dumps(job) + "\n" for job in jobs))
    code, out, _ = terminal("batch", "jobs.jsonl", "-p", "shell", "--json")
    results = {each["job"]: each["status"] for each in map(json.loads, out.splitlines())}
    assert code == 3
    assert results == {"cut": "timed_out", "own": "completed"}


def test_a_mixed_batch_takes_a_budget_for_the_provider_that_reports_its_cost(
    terminal: CommandTerminal,
) -> None:
    path = terminal.home / "jobs.jsonl"
    path.write_text('{"id": "a", "prompt": "echo a"}\n{"id": "b", "prompt": "echo b"}\n')
    words = ("batch", "jobs.jsonl", "-p", "shell")
    code, _, err = terminal(*words, "--budget-usd", "2")
    remedy = "use --set claude.budget_usd=2 instead of --budget-usd"
    assert (code, err.count("error"), err.endswith(remedy)) == (1, 1, True)
    assert terminal(*words, "--set", "claude.budget_usd=2")[0] == 0


def test_a_default_that_a_provider_cannot_keep_is_refused_with_its_source(
    terminal: CommandTerminal,
) -> None:
    path = users_file(terminal)
    path.write_text("[provider.shell]\nbudget_usd = 2\n")
    (terminal.home / "jobs.jsonl").write_text('{"id": "a", "prompt": "echo a"}\n')
    code, _, err = terminal("batch", "jobs.jsonl", "-p", "shell")
    assert code == 1
    assert f"error: budget_usd (2.0, from {path}:2): shell reports no cost" in err


# --- a project's file ----------------------------------------------------------------------------


def test_a_project_may_narrow_the_defaults_of_a_provider_and_no_more(
    terminal: CommandTerminal,
) -> None:
    own(
        terminal,
        "budget_usd = 5.0\n[provider.claude]\nbudget_usd = 2.0\n"
        'permission_mode = "full_auto"\ntools_denied = ["Bash"]\n',
    )
    project(
        terminal,
        '[provider.claude]\nmodel = "haiku"\nbudget_usd = 3.0\ntools_denied = ["Write"]\n'
        'permission_mode = "accept_edits"\ntools_allowed = ["Read"]\n'
        "[provider.codex]\nbudget_usd = 4.0\npermission_mode = 'full_auto'\n"
        "[provider.claude.options]\ncommand = ['/bin/sh']\nfallback_model = 'x'\n",
    )
    told = {key: value for key, (value, _) in defaults(terminal).items()}
    assert told == {
        "claude.model": "haiku",
        "claude.budget_usd": 2.0,
        "claude.permission_mode": "accept_edits",
        "claude.tools_denied": ["Bash", "Write"],
        "codex.budget_usd": 4.0,
    }
    assert refused(terminal) == [
        "provider.claude.budget_usd",
        "provider.claude.tools_allowed",
        "provider.claude.options.command",
        "provider.codex.permission_mode",
    ]


def test_a_general_value_of_a_project_does_not_widen_a_default_of_the_user(
    terminal: CommandTerminal,
) -> None:
    own(
        terminal,
        "budget_usd = 5.0\n[provider.claude]\nbudget_usd = 2.0\npermission_mode = 'plan'\n"
        "tools_denied = ['Bash']\nmax_turns = 9\n",
    )
    project(
        terminal,
        "budget_usd = 4.0\npermission_mode = 'default'\ntools_denied = ['Write']\nmax_turns = 3\n",
    )
    told = {key: value for key, (value, _) in defaults(terminal).items()}
    assert told == {
        "claude.budget_usd": 2.0,
        "claude.permission_mode": "plan",
        "claude.tools_denied": ["Bash", "Write"],
    }
    assert refused(terminal) == ["budget_usd", "permission_mode"]
    assert effective(terminal)["max_turns"] == 3


def test_a_projects_file_may_set_every_default_once_it_is_trusted(
    terminal: CommandTerminal,
) -> None:
    path = project(terminal, "[provider.codex]\npermission_mode = 'full_auto'\n")
    assert defaults(terminal) == {}
    assert terminal.bare("trust", ".")[0] == 0
    assert defaults(terminal)["codex.permission_mode"] == ("full_auto", f"{path}:2")
