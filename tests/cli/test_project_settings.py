"""An untrusted project's file may only set what narrows."""

import pytest
from hypothesis import given, strategies as st

from sessionmgr.cli.config.project_settings import AGENTS, narrow_setting
from sessionmgr.cli.config.settings import SETTINGS
from sessionmgr.model import PermissionMode
from tests.cli.command_terminal import CommandTerminal
from tests.cli.test_trust import own, project, refused, settings

ORDER = [
    PermissionMode.PLAN,
    PermissionMode.DEFAULT,
    PermissionMode.ACCEPT_EDITS,
    PermissionMode.FULL_AUTO,
    PermissionMode.DANGEROUSLY_SKIP_PERMISSIONS,
]

REFUSED = {
    'store = "x.db"': ["store"],
    'log_file = "x.log"': ["log_file"],
    'capture = "x"': ["capture"],
    'approve = "rules.toml"': ["approve"],
    'on_denied = "fail"': ["on_denied"],
    'retry_from = "fresh"': ["retry_from"],
    'provider = "shell"': ["provider"],
    'provider = "some_other"': ["provider"],
    'provider = "acp:goose"': ["provider"],
    'agents = "agents.json"': ["agents"],
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
def test_what_does_not_narrow_is_refused_until_it_is_trusted(
    terminal: CommandTerminal, text: str
) -> None:
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
def test_models_and_narrower_limits_are_taken_from_a_project(
    terminal: CommandTerminal, text: str
) -> None:
    project(terminal, text)
    name, value = TAKEN[text]
    assert refused(terminal) == []
    assert settings(terminal)[name] == value


def test_each_setting_is_decided(terminal: CommandTerminal) -> None:
    named = {text.split(" ")[0].split(".")[0] for text in (*REFUSED, *TAKEN)}
    assert named == set(SETTINGS)


def test_a_project_cannot_drop_what_the_user_denies_or_exceed_a_limit(
    terminal: CommandTerminal,
) -> None:
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
    taken, refusals = narrow_setting("permission_mode", projects, known)
    limit = users or PermissionMode.DEFAULT
    if ORDER.index(projects) <= ORDER.index(limit):
        assert (taken, refusals) == (projects, [])
    else:
        assert taken is None
        assert [each.key for each in refusals] == [("permission_mode",)]


@given(name=st.text(max_size=20).filter(lambda name: name not in SETTINGS), value=st.integers())
def test_a_setting_that_is_not_listed_is_refused(name: str, value: int) -> None:
    taken, refusals = narrow_setting(name, value, {})
    assert taken is None
    assert len(refusals) == 1


def test_a_prompt_is_no_program_to_the_providers_that_a_project_may_choose() -> None:
    assert {"claude", "codex"} == AGENTS
