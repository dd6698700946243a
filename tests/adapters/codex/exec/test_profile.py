"""Secret settings of a `codex exec` appear on no command line."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from sessionmgr.adapter import SecretFileRefused
from sessionmgr.manager import Manager
from sessionmgr.model import FailureKind, Json
from sessionmgr_adapters.codex.config import merge_overrides
from sessionmgr_adapters.codex.exec.launch import PROFILE
from sessionmgr_adapters.codex.exec.profile import (
    linked_profile,
    require_no_user_profile,
    split_secrets,
)
from tests.adapters.codex.exec.test_driver import BEGIN, DONE, manager as manager, played
from tests.adapters.codex.exec.test_launch import spec

SECRETS = ["Token abc123", "k3y-0123456789", "tok-1", "pass-1"]
SETTINGS: dict[str, Json] = {
    "model": "m",
    "mcp_servers": {
        "x": {
            "url": "https://example.com",
            "http_headers": {"X-Org": SECRETS[0]},
            "env_http_headers": {"Authorization": "MY_VARIABLE"},
            "bearer_token_env_var": "MY_TOKEN_VARIABLE",
            "enabled": True,
        },
        "s": {"command": "server", "env": {"ANY": SECRETS[1]}},
    },
    "model_providers": {
        "p": {"experimental_bearer_token": SECRETS[2], "env_key": "OPENAI_API_KEY"},
        "q": {"base_url": f"https://me:{SECRETS[3]}@example.com"},
    },
}


def test_secrets_are_parted_from_the_rest_and_nothing_else_is() -> None:
    plain, secret = split_secrets(SETTINGS)
    assert merge_overrides(secret, plain) == SETTINGS
    assert not [each for each in SECRETS if each in str(plain)]
    assert secret == {
        "mcp_servers": {
            "x": {"http_headers": {"X-Org": SECRETS[0]}},
            "s": {"env": {"ANY": SECRETS[1]}},
        },
        "model_providers": {
            "p": {"experimental_bearer_token": SECRETS[2]},
            "q": {"base_url": f"https://me:{SECRETS[3]}@example.com"},
        },
    }


NAMES = st.sampled_from(["a", "api_key", "env", "http_headers", "env_key", "token"])
TABLES = st.recursive(
    st.booleans() | st.integers() | st.text(max_size=5) | st.lists(st.text(max_size=5), max_size=2),
    lambda inner: st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)


@given(settings=st.dictionaries(NAMES, TABLES))
def test_what_was_parted_is_the_same_when_one_is_laid_over_the_other(
    settings: dict[str, Json],
) -> None:
    plain, secret = split_secrets(settings)
    assert merge_overrides(secret, plain) == merge_overrides(settings)
    assert split_secrets(plain)[1] == {}


def test_what_is_secret_stands_in_the_file_and_the_rest_on_the_line() -> None:
    plain, secret = split_secrets(SETTINGS)
    made = spec(settings=tuple(plain.items()), secrets=secret)
    assert tomllib.loads(made.files[PROFILE]) == secret
    line = made.command({"answer": "/files/answer"}, "sessionmgr-1").argv
    assert "--profile=sessionmgr-1" in line
    assert line.index("--profile=sessionmgr-1") > line.index("exec")
    assert not [each for each in SECRETS if each in " ".join(line)]
    assert PROFILE not in spec(settings=(("model", "m"),)).files


@pytest.mark.parametrize("flags", [["-p", "mine"], ["--profile=mine"], ["--profile", "mine"]])
def test_a_profile_of_the_users_own_is_not_put_aside(flags: list[str]) -> None:
    with pytest.raises(SecretFileRefused, match=flags[0]):
        require_no_user_profile(["codex", *flags])
    require_no_user_profile(["--profile"])


def test_links_that_lead_nowhere_are_taken_away_and_others_stay(tmp_path: Path) -> None:
    home, file = tmp_path / "home", tmp_path / "file"
    file.touch()
    with linked_profile(home, file) as name:
        (home / "sessionmgr-dead.config.toml").symlink_to(tmp_path / "gone")
        (home / "theirs.config.toml").symlink_to(tmp_path / "gone")
        (home / "sessionmgr-file.config.toml").touch()
        with linked_profile(home, file) as other:
            assert name != other
            names = {f"{each}.config.toml" for each in (name, other, "theirs", "sessionmgr-file")}
            assert {each.name for each in home.iterdir()} == names
    left = {"theirs.config.toml", "sessionmgr-file.config.toml"}
    assert {each.name for each in home.iterdir()} == left


def test_a_link_of_another_user_that_cannot_be_followed_stays(tmp_path: Path) -> None:
    home, file = tmp_path / "home", tmp_path / "file"
    home.mkdir()
    file.touch()
    other = home / "sessionmgr-other.config.toml"
    other.symlink_to("x" * 300)  # stat fails even for root
    with linked_profile(home, file):
        assert len(list(home.iterdir())) == 2
    assert list(home.iterdir()) == [other]


def test_a_home_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "home").touch()
    with (
        pytest.raises(SecretFileRefused, match=r"home.*sessionmgr-.*config.toml: "),
        linked_profile(tmp_path / "home", tmp_path / "file"),
    ):
        pass


READ = """say "$*" > line
for each; do case $each in --profile=*)
    cat "$CODEX_HOME/${each#*=}.config.toml" > profile;; esac; done
ls -l "$CODEX_HOME" > listed"""


async def test_a_run_reads_its_secrets_from_a_profile_that_is_gone_with_it(
    manager: Manager, tmp_path: Path
) -> None:
    home = tmp_path / "codex-home"
    home.mkdir()
    result, _ = await played(
        manager,
        tmp_path,
        READ,
        BEGIN,
        DONE,
        mcp_servers=SETTINGS["mcp_servers"],
        config={"model_providers": SETTINGS["model_providers"]},
        home=str(home),
    )
    assert result.status == "completed", result.failure
    line = (tmp_path / "line").read_text()
    assert "https://example.com" in line
    assert not [each for each in SECRETS if each in line]
    assert tomllib.loads((tmp_path / "profile").read_text()) == split_secrets(SETTINGS)[1]
    assert " -> " in (tmp_path / "listed").read_text()
    assert list(home.iterdir()) == []


async def test_a_run_whose_program_has_a_profile_is_refused(
    manager: Manager, tmp_path: Path
) -> None:
    command: list[Json] = ["codex", "--profile=mine"]
    servers = SETTINGS["mcp_servers"]
    result, _ = await played(manager, tmp_path, DONE, command=command, mcp_servers=servers)
    assert result.failure is not None
    assert result.failure.kind is FailureKind.CONFIG_INVALID
    assert "--profile=mine" in result.failure.message
