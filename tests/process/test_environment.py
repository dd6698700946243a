from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from sessionmgr.process import EnvironmentVariableInvalid, ProcessError
from sessionmgr.process.environment import (
    NESTING,
    ConditionalNames,
    EnvironmentSpec,
    build_environment,
    secret_values,
)

CLAUDE = EnvironmentSpec(
    names=("ANTHROPIC_*", "CLAUDE_*", "IS_SANDBOX"),
    when=(
        ConditionalNames(("CLAUDE_CODE_USE_BEDROCK",), ("AWS_*",)),
        ConditionalNames(("CLAUDE_CODE_USE_VERTEX",), ("GOOGLE_*", "CLOUDSDK_*")),
    ),
    secret=("ANTHROPIC_CUSTOM_HEADERS",),
)
OURS = {"PATH": "/bin", "HOME": "/root"}


def test_the_base_passes_and_nothing_else_does() -> None:
    passing = dict.fromkeys(["LC_ALL", "XDG_RUNTIME_DIR", "https_proxy", "SSL_CERT_FILE"], "x")
    blocked = dict.fromkeys(["LD_PRELOAD", "OPENAI_API_KEY", "PYTHONPATH", "LC", "path"], "x")
    assert build_environment(OURS | passing | blocked) == OURS | passing


def test_an_adapters_patterns_pass_and_those_of_others_do_not() -> None:
    source = OURS | {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k", "XANTHROPIC_A": "x"}
    assert build_environment(source, CLAUDE) == OURS | {"ANTHROPIC_API_KEY": "k"}


@pytest.mark.parametrize("switch", ["1", "true", "yes", "on"])
def test_a_group_passes_when_its_switch_is_on(switch: str) -> None:
    source = OURS | {"AWS_PROFILE": "p", "GOOGLE_X": "g", "CLAUDE_CODE_USE_BEDROCK": switch}
    env = build_environment(source, CLAUDE)
    assert env["AWS_PROFILE"] == "p"
    assert "GOOGLE_X" not in env


@pytest.mark.parametrize("switch", ["", "0", "false", "No", " off "])
def test_a_group_stays_when_its_switch_is_off(switch: str) -> None:
    source = OURS | {"AWS_PROFILE": "p", "CLAUDE_CODE_USE_BEDROCK": switch}
    assert "AWS_PROFILE" not in build_environment(source, CLAUDE)


def test_a_switch_counts_as_the_child_sees_it() -> None:
    source = OURS | {"AWS_PROFILE": "p", "CLAUDE_CODE_USE_BEDROCK": "1"}
    off, on = {"CLAUDE_CODE_USE_BEDROCK": "0"}, {"CLAUDE_CODE_USE_BEDROCK": "1"}
    assert "AWS_PROFILE" not in build_environment(source, CLAUDE, off)
    assert "AWS_PROFILE" in build_environment(OURS | {"AWS_PROFILE": "p"}, CLAUDE, on)
    other = EnvironmentSpec(when=CLAUDE.when)  # does not let the switch itself pass
    assert build_environment(source, other) == OURS


def test_the_job_wins_over_what_we_have_and_over_its_groups() -> None:
    source = OURS | {"ANTHROPIC_MODEL": "a", "AWS_PROFILE": "a", "CLAUDE_CODE_USE_BEDROCK": "1"}
    job = {"ANTHROPIC_MODEL": "b", "AWS_PROFILE": "b", "ANYTHING": "c", "PATH": "/opt"}
    env = build_environment(source, CLAUDE, job)
    assert env == {"HOME": "/root", "CLAUDE_CODE_USE_BEDROCK": "1"} | job


@pytest.mark.parametrize("name", NESTING)
def test_variables_of_a_surrounding_agent_are_never_passed_on(name: str) -> None:
    greedy = EnvironmentSpec(names=("*", name), when=(ConditionalNames(("PATH",), (name, "*")),))
    source = OURS | {name: "1"}
    assert build_environment(source, greedy) == OURS
    with pytest.raises(EnvironmentVariableInvalid, match=f"{name}: it marks") as caught:
        build_environment(OURS, greedy, {name: "1"})
    assert caught.value.name == name
    assert isinstance(caught.value, ProcessError)


def test_our_mark_is_last_and_no_job_sets_it() -> None:
    tag = {"SESSIONMGR_TREE": "1f"}
    assert build_environment({"SESSIONMGR_TREE": "0"} | OURS, tag=tag) == OURS | tag
    with pytest.raises(EnvironmentVariableInvalid, match="tag of the process tree"):
        build_environment(OURS, job={"SESSIONMGR_TREE": "0"}, tag=tag)


def test_the_sandbox_is_the_users_word_and_never_ours() -> None:
    assert "IS_SANDBOX" not in build_environment(OURS, CLAUDE)
    assert build_environment(OURS | {"IS_SANDBOX": "1"}, CLAUDE)["IS_SANDBOX"] == "1"
    assert "IS_SANDBOX" not in build_environment(OURS | {"IS_SANDBOX": "1"})


@pytest.mark.parametrize(
    ("name", "value"), [("", "a"), ("A=B", "a"), ("A\0", "a"), ("A", "a\0b")], ids=repr
)
def test_what_no_environment_can_hold_is_refused(name: str, value: str) -> None:
    with pytest.raises(EnvironmentVariableInvalid) as caught:
        build_environment(OURS, job={name: value})
    assert caught.value.name == repr(name)


VALUES = st.text().filter(lambda text: "\0" not in text)
NAMES = VALUES.filter(lambda name: bool(name) and "=" not in name and name not in NESTING)


@given(source=st.dictionaries(st.text(), st.text()), job=st.dictionaries(NAMES, VALUES))
def test_every_value_comes_from_somewhere_and_nothing_of_the_source_is_changed(
    source: dict[str, str], job: dict[str, str]
) -> None:
    before = dict(source)
    env = build_environment(source, CLAUDE, job)
    assert source == before
    assert env.items() <= (source | job).items()
    assert job.items() <= env.items()


def test_secrets_are_known_by_their_names() -> None:
    hidden = {
        "ANTHROPIC_API_KEY": "sk-ant-0123",
        "GH_TOKEN": "ghp_abcdefgh",
        "client_secret": "s3cr3t-value",
        "DB_PASSWORD_2": "correct horse",
        "OPENAI_APIKEY": "sk-abcdefg",
        "ANTHROPIC_CUSTOM_HEADERS": "X-Auth: abcdef",
    }
    shown = {"PATH": "/usr/local/bin", "MAX_TOKENS": "200000001", "KEYBOARD": "de-latin1"}
    assert set(secret_values(hidden | shown, CLAUDE)) == set(hidden.values())
    assert "X-Auth: abcdef" not in secret_values(hidden)


def test_short_and_trivial_values_are_no_secrets() -> None:
    env = {"A_KEY": "1234567", "B_KEY": "12345678", "C_TOKEN": "xxxxxxxxxxyz", "D_SECRET": ""}
    assert secret_values(env) == ("12345678",)


def test_user_and_password_of_an_address_are_secrets() -> None:
    env = {
        "HTTPS_PROXY": "http://joe:p%40ssw0rd@proxy:3128",
        "NPM_REGISTRY": "https://tok-en-123@npm.example/",
        "DOCS": "https://example.com/a@b:cdefghij",
    }
    assert secret_values(env) == ("p%40ssw0rd", "tok-en-123", "p@ssw0rd")


def test_the_longest_comes_first_so_that_no_rest_of_it_stays() -> None:
    env = {"A_KEY": "abcdefgh", "B_KEY": "abcdefghij", "C_KEY": " abcdefghijkl\n"}
    assert secret_values(env) == (" abcdefghijkl\n", "abcdefghijkl", "abcdefghij", "abcdefgh")
